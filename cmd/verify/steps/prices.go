package steps

import "github.com/drover-run/drover/cmd/verify/runner"

// Prices in us-east-1, in US dollars. Storage, requests and traffic of a run cost cents, so they are left out.
var (
	// https://aws.amazon.com/eks/pricing/
	controlPlanePrice = runner.Rate{Name: "EKS control planes", PerHour: 0.10}
	// https://aws.amazon.com/vpc/pricing/
	natPrice = runner.Rate{Name: "NAT gateways", PerHour: 0.045, WholeHours: true}
	// https://aws.amazon.com/vpc/pricing/
	addressPrice = runner.Rate{Name: "public IPv4 addresses", PerHour: 0.005}
	// https://aws.amazon.com/ec2/pricing/on-demand/
	nodePrice  = runner.Rate{Name: "nodes (" + instanceType + ")", PerHour: 0.0416}
	smallPrice = runner.Rate{Name: "instances of experiments (" + smallType + ")", PerHour: 3 * 0.0104}
)
