package cli

// kubeconfig and token: how kubectl and other clients of the Kubernetes API reach a cluster.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// accessHint is part of the help of both commands.
const accessHint = `EKS lets you in if an entry of spec.controlPlane.access names your IAM user or role, or the role of --role.`

func kubeconfigCommand() *cobra.Command {
	var role, alias string
	var stdout bool
	cmd := &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Write a kubeconfig, so that kubectl reaches a cluster",
		Long: `Adds a cluster to your kubeconfig and makes its context the current one, as kubectl config does: in the file that KUBECONFIG
names, or else in .kube/config of your home folder. It keeps everything else in the file. The same command again updates the entry.

The kubeconfig has no credentials. kubectl calls "drover token" for each sign-in. The entry stores the AWS profile and the region that are
set when you run this command.
` + accessHint,
		Example: `  drover kubeconfig demo
  drover kubeconfig demo --role arn:aws:iam::111122223333:role/operators --alias demo-operator
  drover kubeconfig demo --stdout`,
		Annotations:       ExitCodes("the kubeconfig is written", "an error; the kubeconfig is unchanged"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := regionConfig(cmd.Context())
			if err != nil {
				return err
			}
			if alias == "" {
				alias = args[0]
			}
			found, err := describeForKubeconfig(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			if !found.ResourcesVpcConfig.EndpointPublicAccess {
				fmt.Fprintf(cmd.ErrOrStderr(), "the endpoint of cluster %s is private: kubectl reaches it from the cluster's network only\n", args[0])
			}
			entry, err := kubeconfigOf(cfg, args[0], role, alias, found)
			if err != nil {
				return err
			}
			if stdout {
				text, err := clientcmd.Write(*entry)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return mergeKubeconfig(cmd.OutOrStdout(), entry)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "the ARN of an IAM role to assume for each sign-in")
	cmd.Flags().StringVar(&alias, "alias", "", "the name of the context (default the cluster's name)")
	cmd.Flags().BoolVar(&stdout, "stdout", false, "print a kubeconfig of this cluster only, and change no file")
	return cmd
}

// describeForKubeconfig returns a cluster that has an endpoint.
func describeForKubeconfig(ctx context.Context, cfg aws.Config, cluster string) (*ekstypes.Cluster, error) {
	name := names.EKSCluster(cluster)
	out, err := awseks.NewFromConfig(cfg).DescribeCluster(ctx, &awseks.DescribeClusterInput{Name: &name})
	switch {
	case fault.Code(err) == "ResourceNotFoundException":
		return nil, fmt.Errorf("cluster %s has no control plane in %s: `drover status %s` shows how far it is", cluster, cfg.Region, cluster)
	case err != nil:
		return nil, fmt.Errorf("describing EKS cluster %s: %w", name, err)
	case out.Cluster.Endpoint == nil || out.Cluster.CertificateAuthority == nil || out.Cluster.ResourcesVpcConfig == nil:
		return nil, fmt.Errorf("EKS cluster %s is %s and has no endpoint yet: try again when `drover status %s` says Ready", name,
			out.Cluster.Status, cluster)
	}
	return out.Cluster, nil
}

// kubeconfigOf returns a kubeconfig with one context. Clusters are called by their ARN, as `aws eks update-kubeconfig` does, so that those
// of several accounts and regions may have the same name.
func kubeconfigOf(cfg aws.Config, cluster, role, alias string, found *ekstypes.Cluster) (*clientcmdapi.Config, error) {
	authority, err := base64.StdEncoding.DecodeString(aws.ToString(found.CertificateAuthority.Data))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority of EKS cluster %s: %w", aws.ToString(found.Name), err)
	}
	command, err := ownCommand()
	if err != nil {
		return nil, err
	}
	id := aws.ToString(found.Arn)
	user := "drover " + alias // not the ARN, by which the aws command calls its users
	signIn := &clientcmdapi.ExecConfig{
		APIVersion: clientauthentication.SchemeGroupVersion.String(), InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		Command: command, Args: []string{"token", cluster},
		InstallHint: "drover, which signs in to this cluster, is not there: install it, or run `drover kubeconfig " + cluster + "` again",
		Env:         []clientcmdapi.ExecEnvVar{{Name: "AWS_REGION", Value: cfg.Region}},
	}
	// Where the credentials come from, but no credentials.
	for _, name := range []string{"AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ENDPOINT_URL"} {
		if value := os.Getenv(name); value != "" {
			signIn.Env = append(signIn.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
		}
	}
	if role != "" {
		if err := checkRole(role); err != nil {
			return nil, err
		}
		signIn.Args = append(signIn.Args, "--role", role)
	}
	entry := clientcmdapi.NewConfig()
	entry.Clusters[id] = &clientcmdapi.Cluster{Server: aws.ToString(found.Endpoint), CertificateAuthorityData: authority}
	entry.AuthInfos[user] = &clientcmdapi.AuthInfo{Exec: signIn}
	entry.Contexts[alias] = &clientcmdapi.Context{Cluster: id, AuthInfo: user}
	entry.CurrentContext = alias
	return entry, nil
}

// ownCommand is how kubectl calls this program: by its name if the PATH leads to it, otherwise by its place.
func ownCommand() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the drover program: %w", err)
	}
	found, err := exec.LookPath("drover")
	if err != nil {
		return own, nil
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return "drover", nil
	}
	return own, nil
}

// mergeKubeconfig adds an entry to the caller's kubeconfig. It keeps a context that belongs to another cluster.
func mergeKubeconfig(out io.Writer, entry *clientcmdapi.Config) error {
	alias := entry.CurrentContext
	access := clientcmd.NewDefaultPathOptions()
	merged, err := access.GetStartingConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	context := entry.Contexts[alias]
	if old := merged.Contexts[alias]; old != nil {
		if old.Cluster != context.Cluster {
			return fmt.Errorf("the kubeconfig %s has a context %s for another cluster, %s: choose another name with --alias", old.LocationOfOrigin,
				alias, old.Cluster)
		}
		old.AuthInfo = context.AuthInfo // its namespace and extensions stay
		context = old
	}
	for id, cluster := range entry.Clusters {
		if old := merged.Clusters[id]; old != nil { // its proxy-url and extensions stay
			old.Server, old.CertificateAuthorityData, old.CertificateAuthority = cluster.Server, cluster.CertificateAuthorityData, ""
			cluster = old
		}
		merged.Clusters[id] = cluster
	}
	for id, user := range entry.AuthInfos {
		if old := merged.AuthInfos[id]; old != nil {
			user.LocationOfOrigin = old.LocationOfOrigin
		}
		merged.AuthInfos[id] = user
	}
	merged.Contexts[alias], merged.CurrentContext = context, alias
	if err := clientcmd.ModifyConfig(access, *merged, true); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	file := context.LocationOfOrigin
	if file == "" {
		file = access.GetDefaultFilename()
	}
	fmt.Fprintf(out, "context %s is in %s, and current: kubectl get nodes\n", alias, file)
	return nil
}

func tokenCommand() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "token CLUSTER",
		Short: "Print a token for a cluster's Kubernetes API, for kubectl",
		Long: `Prints an ExecCredential of Kubernetes, with a token that EKS accepts for a quarter of an hour. kubectl calls this command: see
drover kubeconfig. It signs in with your AWS credentials, or as the role of --role. It calls no service except STS, to assume that role.
` + accessHint,
		Example: `  drover token demo
  drover token demo --role arn:aws:iam::111122223333:role/operators`,
		Annotations:       ExitCodes("the token is printed", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := regionConfig(cmd.Context())
			if err != nil {
				return err
			}
			if role != "" {
				if err := checkRole(role); err != nil {
					return err
				}
				cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role,
					func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = "drover-token" }))
			}
			return printToken(cmd.Context(), cmd.OutOrStdout(), cfg, names.EKSCluster(args[0]), time.Now())
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "the ARN of an IAM role to assume")
	return cmd
}

// tokenLifetime is a minute less than how long EKS accepts a token.
const tokenLifetime = 14 * time.Minute

// printToken prints a credential for a client of the Kubernetes API.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
func printToken(ctx context.Context, out io.Writer, cfg aws.Config, eksCluster string, now time.Time) error {
	token, err := kube.Token(ctx, sts.NewPresignClient(sts.NewFromConfig(cfg)), eksCluster)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthentication.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauthentication.ExecCredentialStatus{
			Token: token, ExpirationTimestamp: &metav1.Time{Time: now.Add(tokenLifetime).UTC().Truncate(time.Second)},
		},
	})
}

// checkRole rejects what STS could not assume.
func checkRole(role string) error {
	parsed, err := arn.Parse(role)
	if err != nil || parsed.Service != "iam" || !strings.HasPrefix(parsed.Resource, "role/") {
		return fmt.Errorf("--role is %q: must be the ARN of an IAM role, such as arn:aws:iam::111122223333:role/operators", role)
	}
	return nil
}
