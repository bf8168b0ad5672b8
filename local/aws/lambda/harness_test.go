package lambda

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
)

const (
	account = "111122223333"
	region  = "eu-central-1"
	trust   = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},` +
		`"Action":"sts:AssumeRole"}]}`
	writing = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["logs:CreateLogStream","logs:PutLogEvents"],` +
		`"Resource":"*"},{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"*"}]}`
)

var bootstrap = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "bootstrap")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", path, "./testdata/bootstrap")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return archive(map[string][]byte{"bootstrap": program}, 0o755)
})

func archive(files map[string][]byte, mode os.FileMode) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

// logs has the groups /aws/lambda/fn and drover at first.
type logs struct {
	mu     sync.Mutex
	groups map[string]bool
	lines  []string
	group  string
}

func (l *logs) EnsureLogGroup(group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups[group] = true
}

func (l *logs) WriteLog(group, _, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.groups[group] {
		return
	}
	l.group, l.lines = group, append(l.lines, line)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

type message struct {
	queue, body string
	attributes  map[string]string
}

type queues struct{ sent chan message }

func (q *queues) Send(_ context.Context, caller iam.Caller, queue, body string, attributes map[string]string) (string, error) {
	if err := caller.Authorize("sqs:SendMessage", queue, nil); err != nil {
		return "", err
	}
	q.sent <- message{queue, body, attributes}
	return "id", nil
}

type objects map[string][]byte

func (o objects) ReadObject(_ context.Context, caller iam.Caller, bucket, key string) ([]byte, error) {
	if err := caller.Authorize("s3:GetObject", "arn:aws:s3:::"+bucket+"/"+key, nil); err != nil {
		return nil, err
	}
	if b, ok := o[bucket+"/"+key]; ok {
		return b, nil
	}
	return nil, &iam.Error{Code: "NoSuchKey", Message: "The specified key does not exist."}
}

// world is Lambda behind an endpoint of its own.
type world struct {
	*Service
	identities *iam.Service
	vpcs       *ec2.Service
	logs       *logs
	queues     *queues
	objects    objects
	role       string
	client     *sdk.Client
	zip        []byte
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := &clock.Clock{Speed: 10000}
	w := &world{
		identities: iam.New(account, region, c), logs: &logs{groups: map[string]bool{"/aws/lambda/fn": true, "drover": true}},
		queues: &queues{make(chan message, 10)}, objects: objects{},
	}
	var err error
	w.zip, err = bootstrap()
	require.NoError(t, err)
	role, err := w.identities.CreateRole(iam.Role{Name: "function", TrustDocument: trust})
	require.NoError(t, err)
	require.NoError(t, w.identities.PutRolePolicy("function", "logs", writing))
	w.role = w.identities.RoleARN(role)

	ep := endpoint.New(w.identities, nil)
	server := httptest.NewServer(ep)
	t.Cleanup(server.Close)
	w.vpcs = ec2.New(ec2.Config{Account: account, Region: region, Clock: c})
	t.Cleanup(w.vpcs.Close)
	w.Service = New(Config{
		Account: account, Region: region, Clock: c, Roles: w.identities, Objects: w.objects, Logs: w.logs, Queues: w.queues, Network: w.vpcs,
		Endpoint: func() string { return server.URL }, Dir: t.TempDir(),
	})
	t.Cleanup(w.Service.Close)
	ep.Handle(w.Service.Wire(), w.vpcs.Wire())
	_, admin := w.identities.Admin()
	w.client = clientOf(server.URL, admin)
	return w
}

func clientOf(url string, c iam.Credentials) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: region, BaseEndpoint: aws.String(url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
	})
}

func (w *world) create(t *testing.T, change func(*sdk.CreateFunctionInput)) *sdk.CreateFunctionOutput {
	t.Helper()
	out, err := w.client.CreateFunction(t.Context(), w.input(change))
	require.NoError(t, err)
	return out
}

// input returns a valid request that is changed.
func (w *world) input(change func(*sdk.CreateFunctionInput)) *sdk.CreateFunctionInput {
	in := &sdk.CreateFunctionInput{
		FunctionName: aws.String("fn"), Role: aws.String(w.role), Runtime: types.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
		Architectures: []types.Architecture{types.Architecture(architectures[runtime.GOARCH])}, Code: &types.FunctionCode{ZipFile: w.zip},
		Timeout: aws.Int32(10),
	}
	if change != nil {
		change(in)
	}
	return in
}

func (w *world) invoke(t *testing.T, event string) *sdk.InvokeOutput {
	t.Helper()
	out, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{
		FunctionName: aws.String("fn"), Payload: []byte(event), LogType: types.LogTypeTail,
	})
	require.NoError(t, err)
	return out
}
