package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestProxyEnvironment(t *testing.T) {
	proxy := &api.Proxy{URL: "http://proxy.example.com:3128", NoProxy: []string{".example.com"}}
	const always = "localhost,127.0.0.1,169.254.169.254,.svc,.cluster.local,172.20.0.0/16,"
	tests := map[string]struct {
		change func(*api.Cluster)
		cell   func(*Cell)
		direct string
	}{
		"a network with NAT gateways": {
			func(*api.Cluster) {}, func(*Cell) {},
			always + ".eu-west-1.eks.amazonaws.com,10.7.0.0/16,s3.eu-west-1.amazonaws.com,.s3.eu-west-1.amazonaws.com,.example.com",
		},
		"a network with VPC endpoints": {
			func(c *api.Cluster) { c.Spec.Network.NATGateways = api.NATNone }, func(*Cell) {},
			always + ".eu-west-1.eks.amazonaws.com,10.7.0.0/16,s3.eu-west-1.amazonaws.com,.s3.eu-west-1.amazonaws.com," +
				"ec2.eu-west-1.amazonaws.com,api.ecr.eu-west-1.amazonaws.com,.dkr.ecr.eu-west-1.amazonaws.com,sts.eu-west-1.amazonaws.com," +
				"eks.eu-west-1.amazonaws.com,eks-auth.eu-west-1.api.aws,logs.eu-west-1.amazonaws.com,.example.com",
		},
		"secondary ranges": {
			func(c *api.Cluster) { c.Spec.Network.SecondaryCIDRs = []string{"100.64.0.0/16"} }, func(*Cell) {},
			always + ".eu-west-1.eks.amazonaws.com,10.7.0.0/16,100.64.0.0/16,s3.eu-west-1.amazonaws.com,.s3.eu-west-1.amazonaws.com,.example.com",
		},
		"an existing network": {
			func(c *api.Cluster) { c.Spec.Network = api.Network{Existing: &api.ExistingNetwork{}} }, func(*Cell) {},
			always + ".eu-west-1.eks.amazonaws.com,.example.com",
		},
		"China": {
			func(*api.Cluster) {}, func(c *Cell) { c.Partition, c.Region = "aws-cn", "cn-north-1" },
			always + ".cn-north-1.eks.amazonaws.com.cn,10.7.0.0/16,s3.cn-north-1.amazonaws.com.cn,.s3.cn-north-1.amazonaws.com.cn,.example.com",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &api.Cluster{Spec: api.ClusterSpec{Network: api.Network{CIDR: "10.7.0.0/16", NATGateways: api.NATPerZone}}}
			c.Spec.ControlPlane.ServiceCIDR = "172.20.0.0/16"
			cell := Cell{Partition: "aws", Region: "eu-west-1"}
			test.change(c)
			test.cell(&cell)
			require.Equal(t, []variable{
				{"HTTP_PROXY", proxy.URL}, {"http_proxy", proxy.URL}, {"HTTPS_PROXY", proxy.URL}, {"https_proxy", proxy.URL},
				{"NO_PROXY", test.direct}, {"no_proxy", test.direct},
			}, proxyEnvironment(cell, c, proxy))
			require.Nil(t, proxyEnvironment(cell, c, nil))
		})
	}
}

// nodeadm sets the variables for all services. The script that fetches the configuration has them too, and the certificates.
func TestProxyOfNodes(t *testing.T) {
	data := readUserData(t, userDataOf(t, stackOf(t, render(t, resolve(t, fullCluster())), "pool-workers")))
	set := at(t, data.Config, "spec", "instance", "environment", "default").(map[string]any)
	require.Len(t, set, 6)
	require.Equal(t, "http://proxy.example.com:3128", set["HTTPS_PROXY"])
	for name, value := range set {
		require.Equal(t, value, data.Environment[name])
	}
	require.Equal(t, "/etc/pki/tls/certs/ca-bundle.crt", data.Environment["AWS_CA_BUNDLE"])
	require.Len(t, data.Environment, 7)

	plain := readUserData(t, userDataOf(t, stackOf(t, render(t, resolve(t, smallCluster())), "pool-workers")))
	require.NotContains(t, plain.Config["spec"], "instance")
	require.Empty(t, plain.Certificates)
	require.Empty(t, plain.Environment)
}

func TestTrustScript(t *testing.T) {
	data := readUserData(t, userDataOf(t, stackOf(t, render(t, resolve(t, fullCluster())), "pool-workers")))
	for name, test := range map[string]struct {
		update string
		joins  bool
	}{
		"installed":  {"exit 0", true},
		"not to use": {"exit 3", false},
	} {
		t.Run(name, func(t *testing.T) {
			bin, store := t.TempDir(), t.TempDir()
			notes := filepath.Join(store, "notes")
			executable(t, bin, "systemctl", `echo "$@" >>"`+notes+`"`)
			executable(t, bin, "update-ca-trust", test.update)
			printed, err := runScript(t, bin, []byte(strings.ReplaceAll(data.trust, anchors, store+"/")))
			installed, readErr := os.ReadFile(filepath.Join(store, "drover.pem"))
			require.NoError(t, readErr)
			require.Equal(t, rootCertificate, string(installed))
			if test.joins {
				require.NoError(t, err, printed)
				require.NoFileExists(t, notes)
				return
			}
			require.Error(t, err)
			require.Contains(t, printed, "the node does not join: its certificates could not be installed")
			masked, readErr := os.ReadFile(notes)
			require.NoError(t, readErr)
			require.Equal(t, "mask --runtime --now nodeadm-run.service\n", string(masked))
		})
	}
}

// Text between certificates could be a line that ends a part of the user data, or a command.
func TestOnlyCertificatesReachNodes(t *testing.T) {
	in := resolve(t, fullCluster())
	pool := &in.Resolved.Spec.Pools[0]
	pool.CABundle = "# Example root\n--drover\n" + rootCertificate + "--drover--\n"
	require.Equal(t, rootCertificate, readUserData(t, userDataOf(t, stackOf(t, render(t, in), "pool-"+pool.Name))).Certificates)
	pool.CABundle = "a bundle"
	_, err := Render(in)
	require.ErrorContains(t, err, "caBundle: it has no certificate")
}
