package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const demoARN = "arn:aws:eks:eu-west-1:111122223333:cluster/drover-demo"

func kubeconfigFor(t *testing.T, role, alias string) *clientcmdapi.Config {
	t.Helper()
	entry, err := kubeconfigOf(aws.Config{Region: "eu-west-1"}, "demo", role, alias, &ekstypes.Cluster{
		Arn: aws.String(demoARN), Name: aws.String("drover-demo"), Endpoint: aws.String("https://a.eks.amazonaws.com"),
		CertificateAuthority: &ekstypes.Certificate{Data: aws.String(base64.StdEncoding.EncodeToString([]byte("a certificate")))},
	})
	require.NoError(t, err)
	return entry
}

func TestMergeKubeconfig(t *testing.T) {
	const other = `apiVersion: v1
kind: Config
clusters: [{name: theirs, cluster: {server: "https://theirs"}}]
users: [{name: them, user: {token: secret}}]
contexts:
  - {name: theirs, context: {cluster: theirs, user: them, namespace: shop}}
current-context: theirs
preferences: {}
`
	merge := func(t *testing.T, content string, entries ...*clientcmdapi.Config) (file, out string, err error) {
		file = filepath.Join(t.TempDir(), "kube", "config")
		if content != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		}
		t.Setenv("KUBECONFIG", file)
		var text bytes.Buffer
		for _, entry := range entries {
			if err = mergeKubeconfig(&text, entry); err != nil {
				break
			}
		}
		return file, text.String(), err
	}
	read := func(t *testing.T, file string) *clientcmdapi.Config {
		config, err := clientcmd.LoadFromFile(file)
		require.NoError(t, err)
		return config
	}
	t.Run("a new file", func(t *testing.T) {
		file, out, err := merge(t, "", kubeconfigFor(t, "", "demo"))
		require.NoError(t, err)
		require.Equal(t, "context demo is in "+file+", and current: kubectl get nodes\n", out)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Equal(t, "demo", read(t, file).CurrentContext)
	})
	t.Run("everything else stays", func(t *testing.T) {
		file, _, err := merge(t, other, kubeconfigFor(t, "", "demo"))
		require.NoError(t, err)
		config := read(t, file)
		require.Len(t, config.Contexts, 2)
		require.Equal(t, "shop", config.Contexts["theirs"].Namespace)
		require.Equal(t, "secret", config.AuthInfos["them"].Token)
		require.Equal(t, "https://theirs", config.Clusters["theirs"].Server)
		require.Equal(t, "demo", config.CurrentContext)
	})
	t.Run("again, with another role: the namespace stays", func(t *testing.T) {
		file, _, err := merge(t, "", kubeconfigFor(t, "", "demo"))
		require.NoError(t, err)
		config := read(t, file)
		config.Contexts["demo"].Namespace = "shop"
		require.NoError(t, clientcmd.WriteToFile(*config, file))
		const role = "arn:aws:iam::111122223333:role/operators"
		require.NoError(t, mergeKubeconfig(&bytes.Buffer{}, kubeconfigFor(t, role, "demo")))
		config = read(t, file)
		require.Equal(t, "shop", config.Contexts["demo"].Namespace)
		require.Equal(t, "drover demo", config.Contexts["demo"].AuthInfo)
		require.Equal(t, []string{"token", "demo", "--role", role}, config.AuthInfos["drover demo"].Exec.Args)
		require.Len(t, config.Clusters, 1)
	})
	t.Run("the entries of the aws command stay", func(t *testing.T) {
		file, _, err := merge(t, `apiVersion: v1
kind: Config
clusters: [{name: "`+demoARN+`", cluster: {server: "https://old", proxy-url: "http://proxy:3128"}}]
users: [{name: "`+demoARN+`", user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}}}]
contexts: [{name: "`+demoARN+`", context: {cluster: "`+demoARN+`", user: "`+demoARN+`"}}]
`, kubeconfigFor(t, "", "demo"))
		require.NoError(t, err)
		config := read(t, file)
		require.Equal(t, "aws", config.AuthInfos[demoARN].Exec.Command)
		require.Equal(t, demoARN, config.Contexts[demoARN].AuthInfo)
		require.Equal(t, "http://proxy:3128", config.Clusters[demoARN].ProxyURL)
		require.Equal(t, "https://a.eks.amazonaws.com", config.Clusters[demoARN].Server)
	})
	t.Run("a context of another cluster is refused", func(t *testing.T) {
		file, _, err := merge(t, other, kubeconfigFor(t, "", "theirs"))
		require.EqualError(t, err, "the kubeconfig "+file+" has a context theirs for another cluster, theirs: choose another name with --alias")
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, other, string(content))
	})
	t.Run("a file that cannot be read", func(t *testing.T) {
		file, _, err := merge(t, "{", kubeconfigFor(t, "", "demo"))
		require.ErrorContains(t, err, "reading the kubeconfig: error loading config file \""+file+`"`)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "{", string(content))
	})
}

// A kubeconfig says where credentials come from, and has none.
func TestKubeconfigHasNoCredentials(t *testing.T) {
	t.Setenv("AWS_PROFILE", "operators")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDSECRET")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hidden")
	entry := kubeconfigFor(t, "", "demo")
	require.Equal(t, []clientcmdapi.ExecEnvVar{{Name: "AWS_REGION", Value: "eu-west-1"}, {Name: "AWS_PROFILE", Value: "operators"}},
		entry.AuthInfos["drover demo"].Exec.Env)
	text, err := clientcmd.Write(*entry)
	require.NoError(t, err)
	require.NotContains(t, string(text), "AKIDSECRET")
	require.NotContains(t, string(text), "hidden")
}

func TestPrintToken(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 28, 10, 0, 0, 5, time.UTC)
	cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
	require.NoError(t, printToken(t.Context(), &out, cfg, "drover-demo", now))
	var printed clientauthentication.ExecCredential
	require.NoError(t, json.Unmarshal(out.Bytes(), &printed))
	require.Equal(t, "client.authentication.k8s.io/v1", printed.APIVersion)
	require.Equal(t, "ExecCredential", printed.Kind)
	require.Regexp(t, "^k8s-aws-v1[.]", printed.Status.Token)
	require.Equal(t, "2026-11-28T10:14:00Z", printed.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
}

func TestRoleOfAToken(t *testing.T) {
	for _, role := range []string{"operators", "arn:aws:iam::111122223333:user/me", "arn:aws:sts::111122223333:assumed-role/operators/me"} {
		require.EqualError(t, checkRole(role), `--role is "`+role+
			`": must be the ARN of an IAM role, such as arn:aws:iam::111122223333:role/operators`)
	}
	require.NoError(t, checkRole("arn:aws-cn:iam::111122223333:role/path/operators"))
}
