package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// proxyRejections are about proxies and certificates of pools.
var proxyRejections = map[string]rejection{
	"a proxy without a URL": {
		pool("proxy: {noProxy: [.example.com]}"), []string{`demo.yaml:17: spec.pools[0].proxy.url: Required value`},
	},
	"a proxy with a password": {
		pool("proxy: {url: 'http://me:secret@proxy.example.com:3128'}"), []string{
			`demo.yaml:17: spec.pools[0].proxy.url: Invalid value: "http://me:secret@proxy.example.com:3128": must be the URL of an HTTP proxy ` +
				`without a user and a path, such as "http://proxy.example.com:3128"`,
		},
	},
	"hosts without a proxy that are none": {
		pool("proxy: {url: 'http://proxy', noProxy: ['*.example.com', 'a,b', 10.0.0.0/33, a, a]}"), []string{
			`demo.yaml:17: spec.pools[0].proxy.noProxy[0]: Invalid value: "*.example.com": must be a host, a domain such as ".example.com", or ` +
				`an IPv4 range such as "10.0.0.0/16"`,
			`demo.yaml:17: spec.pools[0].proxy.noProxy[1]: Invalid value: "a,b": must be a host, a domain such as ".example.com", or ` +
				`an IPv4 range such as "10.0.0.0/16"`,
			`demo.yaml:17: spec.pools[0].proxy.noProxy[2]: Invalid value: "10.0.0.0/33": must be an IPv4 range, such as "10.0.0.0/16"`,
			`demo.yaml:17: spec.pools[0].proxy.noProxy[4]: Duplicate value: "a"`,
		},
	},
	"a proxy in an existing network without its ranges": {
		pairs{
			"    cidr: 10.0.0.0/16\n    zones: [us-east-1a, us-east-1b]\n",
			"    existing: {vpcID: vpc-0123456789abcdef0, subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]}\n",
			"      maxSize: 3\n", "      maxSize: 3\n      proxy: {url: 'http://proxy', noProxy: [.example.com]}\n",
		}, []string{
			`demo.yaml:16: spec.pools[0].proxy.noProxy: Required value: drover does not read the ranges of the VPC of spec.network.existing, ` +
				`which nodes must reach without the proxy: list them, such as 10.0.0.0/16`,
		},
	},
	"a proxy among the settings of Bottlerocket": {
		pool("image: {family: Bottlerocket, settings: {network: {https-proxy: 'http://proxy'}, pki: {drover: {trusted: true}}}}"), []string{
			`demo.yaml:17: spec.pools[0].image.settings.network.https-proxy: Forbidden: drover sets it: use proxy of the pool`,
			`demo.yaml:17: spec.pools[0].image.settings.pki.drover: Forbidden: drover sets it: use caBundle of the pool`,
		},
	},
	"certificates that are none": {
		pool("caBundle: certificates"), []string{
			`demo.yaml:17: spec.pools[0].caBundle: Invalid value: "certificates": must be certificates in PEM, such as ` +
				`"-----BEGIN CERTIFICATE-----"`,
		},
	},
	"a certificate of no use": {
		pool(`caBundle: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`), []string{
			`demo.yaml:17: spec.pools[0].caBundle: Invalid value: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": part 1 is ` +
				`no certificate (x509: malformed certificate): copy it again, whole`,
		},
	},
	"half a certificate": {
		pool(`caBundle: "-----BEGIN CERTIFICATE-----\nAAAA\n"`), []string{
			`demo.yaml:17: spec.pools[0].caBundle: Invalid value: "-----BEGIN CERTIFICATE-----\nAAAA\n": part 1 is no valid PEM: copy it ` +
				`again, whole`,
		},
	},
	"a private key": {
		pool(`caBundle: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"`), []string{
			`demo.yaml:17: spec.pools[0].caBundle: Invalid value: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n": part 1 is ` +
				`a PRIVATE KEY: must be certificates only, because every process on the node can read them`,
		},
	},
}

// certificateUntil returns a certificate in PEM.
func certificateUntil(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Example root"}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// An expired certificate is refused at an upload. A spec that was accepted stays valid: drover reads it again for years.
func TestExpiredCertificates(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	bundle := certificateUntil(t, now.AddDate(1, 0, 0)) + "# a comment\n" + certificateUntil(t, now.AddDate(0, 0, -1))
	spec := edit(t, good, pool("caBundle: |\n        "+strings.ReplaceAll(strings.TrimSpace(bundle), "\n", "\n        ")))
	uploaded := options
	uploaded.Now = now
	_, errs := api.ReadCluster("demo.yaml", spec, uploaded)
	require.Equal(t, []string{
		`demo.yaml:17: spec.pools[0].caBundle: Forbidden: part 2, "CN=Example root", expired on 2026-11-27: remove or replace it`,
	}, lines(errs))
	require.NotEmpty(t, readCluster(t, spec).Spec.Pools[0].CABundle)
}
