// What each program of a control plane is told on its command line.

package kubernetes

import (
	"fmt"
)

// Where etcd answers the API server: a socket in the control plane's folder, which nobody else can enter, and in
// which all programs run (its absolute path may be longer than a socket's). What is not gRPC has a socket of its own:
// with certificates, or on one socket for both, each call would go through more of etcd, and etcd shares the
// processors with what is measured. https://etcd.io/docs/v3.6/op-guide/configuration/
const etcdSocket, etcdHTTPSocket = "unix://etcd.sock", "unix://etcd-http.sock"

// etcdArguments: one member that does not wait for the disk, since the cluster does not outlive the process that started it.
func (c *ControlPlane) etcdArguments() []string {
	// Addresses for other members, of which there are none; port 0 takes whatever is free.
	const peer = "http://127.0.0.1:0"
	return []string{
		"--name=etcd", "--data-dir=" + c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + etcdSocket, "--advertise-client-urls=" + peer,
		"--listen-client-http-urls=" + etcdHTTPSocket, "--enable-grpc-gateway=false",
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=etcd=" + peer,
	}
}

// apiserverArguments follow what EKS lets one see of its API servers: Node and RBAC authorization, tokens decided by an
// authenticator webhook, the OIDC issuer of the cluster.
// https://docs.aws.amazon.com/eks/latest/userguide/cluster-auth.html
func (c *ControlPlane) apiserverArguments() []string {
	issuer := c.options.Issuer
	if issuer == "" {
		issuer = "https://kubernetes.default.svc"
	}
	arguments := []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.port),
		// The address of the kubernetes service's endpoints may not be a loopback one; nothing runs that would use it.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + etcdSocket,
		"--tls-cert-file=" + c.path("apiserver.crt"), "--tls-private-key-file=" + c.path("apiserver.key"),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--service-account-issuer=" + issuer, "--api-audiences=" + issuer,
		"--service-account-key-file=" + c.path("sa.pub"), "--service-account-signing-key-file=" + c.path("sa.key"),
		"--service-cluster-ip-range=" + c.options.ServiceCIDR,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--emulated-version=kube=" + c.options.Minor,
	}
	if c.options.RuntimeConfig != "" {
		arguments = append(arguments, "--runtime-config="+c.options.RuntimeConfig)
	}
	if c.options.TokenWebhookURL != "" {
		arguments = append(arguments,
			"--authentication-token-webhook-config-file="+c.path("token-webhook.yaml"),
			"--authentication-token-webhook-version=v1",
			// The API server has a cache of ten seconds over all authenticators; two minutes more would be too long for people
			// who try access entries.
			"--authentication-token-webhook-cache-ttl=1s")
	}
	return arguments
}

// controllerLimit is in calls a second. With the defaults, 20 and 50, making its own service accounts would be four of the six seconds in
// which the controller manager starts, and binding would be what takes longest of starting a few hundred pods.
const controllerLimit = 500

func (c *ControlPlane) limits() []string {
	if c.options.DefaultLimits {
		return nil
	}
	return []string{fmt.Sprintf("--kube-api-qps=%d", controllerLimit), fmt.Sprintf("--kube-api-burst=%d", 2*controllerLimit)}
}

func (c *ControlPlane) controllerManagerArguments() []string {
	return append([]string{
		"--kubeconfig=" + c.path("kube-controller-manager.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file=" + c.path("sa.key"), "--root-ca-file=" + c.path("ca.crt"),
		"--use-service-account-credentials", "--emulated-version=kube=" + c.options.Minor,
	}, c.limits()...)
}

func (c *ControlPlane) schedulerArguments() []string {
	return append([]string{
		"--kubeconfig=" + c.path("kube-scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--emulated-version=kube=" + c.options.Minor,
	}, c.limits()...)
}

// kwokArguments: every node is KWOK's, with the kubelet's lease of 40 seconds, so that a node whose KWOK is gone turns
// Unknown as one whose kubelet is gone does.
func (c *ControlPlane) kwokArguments() []string {
	cidr := c.options.PodCIDR
	if cidr == "" {
		cidr = "100.64.0.1/10"
	}
	arguments := []string{
		"--kubeconfig=" + c.path("kwok.kubeconfig"), "--manage-all-nodes", "--node-lease-duration-seconds=40",
		"--cidr=" + cidr, "--config=" + c.path("stages.yaml"),
	}
	for _, stage := range podStages {
		arguments = append(arguments, "--config="+c.path(stage+".yaml"))
	}
	return arguments
}
