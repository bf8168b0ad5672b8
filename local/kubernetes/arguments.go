// The command lines of a control plane's programs.

package kubernetes

import (
	"fmt"
)

// etcdSocket is where etcd answers the API server. The socket is in the control plane's directory, which only this user
// can enter. All programs run there, because its absolute path may be too long for a socket. Calls other than gRPC have
// a socket of their own. With certificates, or with one socket for both, each call would pass through more of etcd,
// which shares the processors with what is measured. https://etcd.io/docs/v3.6/op-guide/configuration/
const etcdSocket, etcdHTTPSocket = "unix://etcd.sock", "unix://etcd-http.sock"

// etcdArguments are those of a single member that does not sync to disk, because the cluster ends with the process that
// started it.
func (c *ControlPlane) etcdArguments() []string {
	// Addresses for other members, which do not exist. Port 0 is any free port.
	const peer = "http://127.0.0.1:0"
	return []string{
		"--name=etcd", "--data-dir=" + c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + etcdSocket, "--advertise-client-urls=" + peer,
		"--listen-client-http-urls=" + etcdHTTPSocket, "--enable-grpc-gateway=false",
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=etcd=" + peer,
	}
}

// apiserverArguments follow what is visible of EKS's API servers: Node and RBAC authorization, an authenticator webhook
// for tokens, and the OIDC issuer of the cluster. https://docs.aws.amazon.com/eks/latest/userguide/cluster-auth.html
func (c *ControlPlane) apiserverArguments() []string {
	issuer := c.options.Issuer
	if issuer == "" {
		issuer = "https://kubernetes.default.svc"
	}
	arguments := []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.port),
		// The endpoints of the kubernetes service may not have a loopback address. No pod would use them.
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
	if ttl := c.options.Settings.EventTTL; ttl != "" {
		arguments = append(arguments, "--event-ttl="+ttl)
	}
	if ports := c.options.Settings.NodePorts; ports != "" {
		arguments = append(arguments, "--service-node-port-range="+ports)
	}
	if c.options.RuntimeConfig != "" {
		arguments = append(arguments, "--runtime-config="+c.options.RuntimeConfig)
	}
	if c.options.TokenWebhookURL != "" {
		arguments = append(arguments,
			"--authentication-token-webhook-config-file="+c.path("token-webhook.yaml"),
			"--authentication-token-webhook-version=v1",
			// The API server caches the answers of all authenticators for ten seconds. Two more minutes would be too long for
			// users who try out access entries.
			"--authentication-token-webhook-cache-ttl=1s")
	}
	return arguments
}

// controllerLimit is in calls a second. With the defaults of 20 and 50 the controller manager needs four of its six
// seconds of start for its own service accounts. Binding would dominate the start of a few hundred pods.
const controllerLimit = 500

func (c *ControlPlane) limits() []string {
	if c.options.DefaultLimits {
		return nil
	}
	return []string{fmt.Sprintf("--kube-api-qps=%d", controllerLimit), fmt.Sprintf("--kube-api-burst=%d", 2*controllerLimit)}
}

func (c *ControlPlane) controllerManagerArguments() []string {
	arguments := append([]string{
		"--kubeconfig=" + c.path("kube-controller-manager.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file=" + c.path("sa.key"), "--root-ca-file=" + c.path("ca.crt"),
		"--use-service-account-credentials", "--emulated-version=kube=" + c.options.Minor,
	}, c.limits()...)
	if period := c.options.Settings.HPASyncPeriod; period != "" {
		arguments = append(arguments, "--horizontal-pod-autoscaler-sync-period="+period)
	}
	if threshold := c.options.Settings.TerminatedPodThreshold; threshold > 0 {
		arguments = append(arguments, fmt.Sprintf("--terminated-pod-gc-threshold=%d", threshold))
	}
	return arguments
}

func (c *ControlPlane) schedulerArguments() []string {
	return append([]string{
		"--kubeconfig=" + c.path("kube-scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--emulated-version=kube=" + c.options.Minor,
	}, c.limits()...)
}

// kwokArguments let KWOK play every node, with the kubelet's lease of 40 seconds. So a node without its KWOK becomes
// Unknown like a node without its kubelet.
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
