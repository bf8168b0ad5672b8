package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServicesOfNetworks(t *testing.T) {
	const at = "f.yaml:6: spec.network."
	const a, b = "eipalloc-0123456789abcdef0", "eipalloc-0123456789abcdef1"
	for name, test := range map[string]struct {
		network string
		want    []string
	}{
		"all": {`endpoints: [ssm, ecr.api], flowLogs: {to: "arn:aws:s3:::logs/prod", traffic: REJECT}, natAddresses: {us-east-1a: ` + a +
			`, us-east-1b: ` + b + `}`, nil},
		"one gateway": {`natGateways: Single, natAddresses: {us-east-1a: ` + a + `}`, nil},
		"no service": {`endpoints: [Ssm, ssm., com/x]`, []string{
			at + `endpoints[0]: Invalid value: "Ssm": must be an AWS service as in the name of its VPC endpoint, such as "ssm" or "ecr.api"`,
			at + `endpoints[1]: Invalid value: "ssm.": must be an AWS service as in the name of its VPC endpoint, such as "ssm" or "ecr.api"`,
			at + `endpoints[2]: Invalid value: "com/x": must be an AWS service as in the name of its VPC endpoint, such as "ssm" or "ecr.api"`,
		}},
		"twice":     {`endpoints: [ssm, ssm]`, []string{at + `endpoints[1]: Duplicate value: "ssm"`}},
		"S3 itself": {`endpoints: [s3]`, []string{at + `endpoints[0]: Invalid value: "s3": the network has a gateway endpoint of S3: remove it`}},
		"no bucket": {`flowLogs: {to: logs}`, []string{at + `flowLogs.to: Invalid value: "logs": must be the ARN of a bucket or of a folder ` +
			`in it, such as "arn:aws:s3:::flow-logs/prod"`}},
		"AWS's folder": {`flowLogs: {to: "arn:aws:s3:::logs/AWSLogs"}`, []string{
			at + `flowLogs.to: Invalid value: "arn:aws:s3:::logs/AWSLogs": must not have the folder "AWSLogs", which AWS adds`,
		}},
		"no traffic": {`flowLogs: {to: "arn:aws:s3:::logs", traffic: NONE}`, []string{
			at + `flowLogs.traffic: Unsupported value: "NONE": supported values: "ALL", "ACCEPT", "REJECT"`,
		}},
		"no allocation": {`natGateways: Single, natAddresses: {us-east-1a: 192.0.2.1}`, []string{
			at + `natAddresses[us-east-1a]: Invalid value: "192.0.2.1": must be the allocation id of an Elastic IP address, such as ` +
				`"eipalloc-0123456789abcdef0"`,
		}},
		"a zone without an address": {`natAddresses: {us-east-1a: ` + a + `}`, []string{
			at + `natAddresses[us-east-1b]: Required value: state an address for each NAT gateway, or none`,
		}},
		"a zone without a gateway": {`natGateways: Single, natAddresses: {us-east-1a: ` + a + `, us-east-1b: ` + b + `}`, []string{
			at + `natAddresses[us-east-1b]: Invalid value: "` + b + `": the network has no NAT gateway in this zone: remove it, or see zones and ` +
				`natGateways`,
		}},
		"an address for two": {`natAddresses: {us-east-1a: ` + a + `, us-east-1b: ` + a + `}`, []string{
			at + `natAddresses[us-east-1b]: Invalid value: "` + a + `": is the address of zone us-east-1a too: each gateway needs its own`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := ReadCluster("f.yaml", []byte(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: r}
  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b], `+test.network+"}\n"), Options{})
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			require.Equal(t, test.want, texts)
		})
	}
}
