package deploy

// Each account is a process of its own: the test binary. The S3 gateway can run once in a process, and the tests run in parallel.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/engine/questions"
)

const (
	// asAccount is the environment variable that makes the test binary an account. Its value is the options of the account.
	asAccount = "DROVER_TEST_ACCOUNT"
	// closePatience is how long an account may take to end its control planes.
	closePatience = 2 * time.Minute
)

func TestMain(m *testing.M) {
	if options, isAccount := os.LookupEnv(asAccount); isAccount {
		if err := serveAccount(options); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// accountOptions are those of account.Options that tests choose.
type accountOptions struct {
	Dir, KubernetesBin, OtherReadings string
}

// serveAccount runs an account until the standard input ends, which it also does when the test dies. It prints the environment in which a
// shell reaches the account.
func serveAccount(options string) error {
	var o accountOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return fmt.Errorf("reading %s: %w", asAccount, err)
	}
	readings, err := questions.Parse(o.OtherReadings)
	if err != nil {
		return err
	}
	a, err := account.Start(account.Options{Dir: o.Dir, KubernetesBin: o.KubernetesBin, Speed: 300, Readings: readings})
	if err != nil {
		return err
	}
	defer a.Close()
	if err := json.NewEncoder(os.Stdout).Encode(a.Environment()); err != nil {
		return fmt.Errorf("printing the environment: %w", err)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startAccount starts an account, and returns its environment. The account ends with the test.
func startAccount(t *testing.T, options accountOptions) map[string]string {
	t.Helper()
	var err error
	options.Dir, err = os.MkdirTemp("", "drover-deploy-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(options.Dir)) })
	text, err := json.Marshal(options)
	require.NoError(t, err)
	// Not with the test's context, which ends before the cleanup.
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asAccount+"="+string(text))
	var errs bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &errs, closePatience
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		killer := time.AfterFunc(closePatience, func() { _ = cmd.Process.Kill() })
		defer killer.Stop()
		require.NoError(t, cmd.Wait(), "the account: %s", &errs)
	})
	var environment map[string]string
	require.NoError(t, json.NewDecoder(out).Decode(&environment), "the account did not start")
	return environment
}

// configOf is the configuration of the SDK for an environment of an account.
func configOf(environment map[string]string) aws.Config {
	return aws.Config{
		Region: environment["AWS_REGION"], BaseEndpoint: aws.String(environment["AWS_ENDPOINT_URL"]),
		Credentials: credentials.NewStaticCredentialsProvider(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], ""),
	}
}
