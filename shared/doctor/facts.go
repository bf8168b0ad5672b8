package doctor

import "github.com/drover-run/drover/shared/preflight"

// Facts about an account and region, all from about the same time.
type Facts struct {
	Account, Region string
	// Limits are the values of quotas, by code. A quota that Service Quotas does not have is absent.
	Limits map[string]int
	// Used is how much of each quota is used: see Quota.Key.
	Used map[string]int
	// InstanceTypes of the pools, by name. Those that the region does not offer are absent.
	InstanceTypes map[string]preflight.InstanceType
	// Zones are the ids of the region's availability zones, by name.
	Zones map[string]string
	// Subnets of existing networks, by id.
	Subnets map[string]Subnet
	// PublicSubnets are those of Subnets that have a route to an internet gateway. Only drover doctor reads them: the
	// function plan has nil.
	PublicSubnets map[string]bool
	// Concurrency is how many invocations of Lambda may run at the same time. Unreserved is how many of them no function reserves.
	Concurrency, Unreserved int
	// Offered has the versions of EKS, of the clusters' add-ons, and the images of their pools.
	Offered preflight.Facts
	// Principals are the IAM roles and users of the account that access entries name, by ARN. The value is the ARN of the role or user with
	// that name, or "" if there is none.
	Principals map[string]string
	// Deployment is what the account has for drover itself. Only drover doctor reads it: the function plan has nil.
	Deployment *Deployment
	// Unreadable says, by check, why its facts could not be read: the caller may not make a call.
	Unreadable map[string]string
}

// Subnet of an existing network.
type Subnet struct {
	VPC, Zone, ZoneID string
	Tags              map[string]string
}

// Deployment is what an account has for drover itself.
type Deployment struct {
	// Bootstrap is the version of the CDK's bootstrap stack, or 0.
	Bootstrap int
	// Deployed reports whether the region has drover's functions.
	Deployed bool
	// LinkedRoles are the service-linked roles that exist, by name.
	LinkedRoles map[string]bool
}
