// Package servicequotas simulates Service Quotas. It has the quotas that the local account enforces: VPCs, internet
// gateways and NAT gateways (VPC), Elastic IP addresses and vCPUs of running instances of the standard families (EC2),
// clusters (EKS), roles and OIDC providers (IAM) and concurrent executions (Lambda). It also has the storage of gp3 volumes
// (EBS), which nothing enforces. The values are those of an account that has grown. Set changes a value.
// There are no requests for increases, usage metrics, templates, tags, or quotas of single resources.
// https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/Welcome.html
//
// It supports GetServiceQuota, ListServiceQuotas and GetAWSDefaultServiceQuota.
package servicequotas

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// Codes of the quotas.
const (
	// StandardVCPUs and StandardSpotVCPUs cover instances of the families A, C, D, H, I, M, R, T and Z.
	// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
	StandardVCPUs     = "L-1216C47A"
	StandardSpotVCPUs = "L-34B43A08"
	// VPCs, InternetGateways, NATGateways (in a zone) and Addresses are those of a region.
	// https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
	VPCs             = "L-F678F1CE"
	InternetGateways = "L-A4707A72"
	NATGateways      = "L-FE5A380F"
	Addresses        = "L-0263D0A3"
	// GP3Storage is the storage of volumes, in TiB. https://docs.aws.amazon.com/general/latest/gr/ebs-service.html
	GP3Storage = "L-7A658B76"
	// Clusters is the number of EKS clusters. https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
	Clusters = "L-1194D53C"
	// LambdaConcurrency is how many invocations may run at the same time.
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	LambdaConcurrency = "L-B99A9384"
	// Roles and OIDCProviders are those of IAM in the account. Only the API of us-east-1 has quotas of IAM.
	// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
	Roles         = "L-FE177D64"
	OIDCProviders = "L-858F3967"
)

// Quota is a quota as the API returns it.
type Quota struct {
	ServiceCode         string
	ServiceName         string
	QuotaArn            string
	QuotaCode           string
	QuotaName           string
	Value               float64
	Unit                string
	Adjustable          bool
	GlobalQuota         bool
	QuotaAppliedAtLevel string
}

// entry is a quota with the default value of a new account.
type entry struct {
	Quota
	byDefault float64
	// unset reports that the account has no value of its own.
	unset bool
}

// appliedValue returns the value that holds.
func (e entry) appliedValue() float64 {
	if e.unset {
		return e.byDefault
	}
	return e.Value
}

// Service is Service Quotas in one region of one account.
type Service struct {
	region string

	mu     sync.Mutex
	quotas []entry
}

// global is the region whose API has the quotas of global services.
const global = "us-east-1"

// serves reports whether the API of a region has a quota. That of another region has the global quotas only.
func (s *Service) serves(region string, q entry) bool {
	if q.GlobalQuota {
		return region == global
	}
	return region == s.region
}

// New returns the quotas of an account in a region.
func New(identities *iam.Service) *Service {
	s := &Service{region: identities.Region}
	for _, q := range []struct {
		service, name, code, quota string
		value, byDefault           float64
	}{
		{
			service: "ec2", name: "Amazon Elastic Compute Cloud (Amazon EC2)", code: StandardVCPUs,
			quota: "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", value: 4096, byDefault: 5,
		},
		{service: "ec2", name: "Amazon Elastic Compute Cloud (Amazon EC2)", code: StandardSpotVCPUs,
			quota: "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", value: 4096, byDefault: 5},
		{
			service: "ec2", name: "Amazon Elastic Compute Cloud (Amazon EC2)", code: Addresses, quota: "EC2-VPC Elastic IPs", value: 1000,
			byDefault: 5,
		},
		{service: "vpc", name: "Amazon Virtual Private Cloud (Amazon VPC)", code: VPCs, quota: "VPCs per Region", value: 1000, byDefault: 5},
		{
			service: "vpc", name: "Amazon Virtual Private Cloud (Amazon VPC)", code: InternetGateways, quota: "Internet gateways per Region",
			value: 1000, byDefault: 5,
		},
		{
			service: "vpc", name: "Amazon Virtual Private Cloud (Amazon VPC)", code: NATGateways, quota: "NAT gateways per Availability Zone",
			value: 1000, byDefault: 5,
		},
		{
			service: "ebs", name: "Amazon Elastic Block Store (Amazon EBS)", code: GP3Storage,
			quota: "Storage for General Purpose SSD (gp3) volumes, in TiB", value: 300, byDefault: 50,
		},
		{
			service: "eks", name: "Amazon Elastic Kubernetes Service (Amazon EKS)", code: Clusters, quota: "Clusters", value: 1000,
			byDefault: 100,
		},
		{service: "lambda", name: "AWS Lambda", code: LambdaConcurrency, quota: "Concurrent executions", value: 1000, byDefault: 1000},
		{
			service: "iam", name: "AWS Identity and Access Management (IAM)", code: Roles, quota: "Roles per account", value: 5000,
			byDefault: 1000,
		},
		{
			service: "iam", name: "AWS Identity and Access Management (IAM)", code: OIDCProviders,
			quota: "OpenId connect providers per account", value: 100, byDefault: 100,
		},
	} {
		s.quotas = append(s.quotas, entry{Quota{
			ServiceCode: q.service, ServiceName: q.name, QuotaCode: q.code, QuotaName: q.quota, Value: q.value, Unit: "None", Adjustable: true,
			QuotaAppliedAtLevel: "ACCOUNT", GlobalQuota: q.service == "iam",
			QuotaArn: fmt.Sprintf("arn:%s:servicequotas:%s:%s:%s/%s", identities.Partition, identities.Region, identities.Account,
				q.service, q.code),
		}, q.byDefault, false})
	}
	return s
}

// Set changes a quota's value, as AWS does when it grants an increase. It returns false if the quota does not exist.
func (s *Service) Set(code string, value float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.quotas, func(q entry) bool { return q.QuotaCode == code })
	if i >= 0 {
		s.quotas[i].Value, s.quotas[i].unset = value, false
	}
	return i >= 0
}

// Unset removes the account's own value, so that AWS's default applies. GetServiceQuota then finds nothing, as for some quotas of AWS.
// https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
func (s *Service) Unset(code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.quotas, func(q entry) bool { return q.QuotaCode == code })
	if i >= 0 {
		s.quotas[i].unset = true
	}
	return i >= 0
}

// Limit returns a quota's value, for the services that enforce it.
func (s *Service) Limit(code string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.quotas, func(q entry) bool { return q.QuotaCode == code })
	return int(s.quotas[i].appliedValue())
}

// Of returns a function that returns a quota's value now.
func (s *Service) Of(code string) func() int { return func() int { return s.Limit(code) } }

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "servicequotas", Protocol: wire.JSON11, Version: "2019-06-24", TargetPrefix: "ServiceQuotasV20190624",
		Operations: map[string]wire.Operation{
			"GetServiceQuota": s.get(func(q entry) float64 {
				if q.unset {
					return noValue
				}
				return q.Value
			}),
			"GetAWSDefaultServiceQuota": s.get(func(q entry) float64 { return q.byDefault }),
			"ListServiceQuotas":         s.list,
		},
	}
}

// noValue is the value of a quota without one.
const noValue = -1

func noSuch(format string, args ...any) error {
	return wire.Errorf("NoSuchResourceException", format, args...)
}

func (s *Service) get(value func(entry) float64) wire.Operation {
	return func(_ context.Context, c *wire.Call) (any, error) {
		var in struct{ ServiceCode, QuotaCode string }
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		if err := c.Authorize("*"); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.quotas, func(q entry) bool { return q.ServiceCode == in.ServiceCode && q.QuotaCode == in.QuotaCode })
		if i < 0 || !s.serves(c.Region, s.quotas[i]) {
			return nil, noSuch("The request failed because the specified service quota does not exist: %s of %s is not in the local account.",
				in.QuotaCode, in.ServiceCode)
		}
		out := struct{ Quota Quota }{s.quotas[i].Quota}
		if out.Quota.Value = value(s.quotas[i]); out.Quota.Value == noValue {
			return nil, noSuch("The request failed because the specified service quota has no applied value: %s of %s.", in.QuotaCode,
				in.ServiceCode)
		}
		return out, nil
	}
}

func (s *Service) list(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ServiceCode, QuotaCode, NextToken string
		MaxResults                        int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	from := 0
	if in.NextToken != "" {
		var err error
		if from, err = strconv.Atoi(in.NextToken); err != nil || from < 0 {
			return nil, wire.Errorf("InvalidPaginationTokenException", "Invalid NextToken.")
		}
	}
	if in.MaxResults == 0 {
		in.MaxResults = 100
	}
	out := struct {
		Quotas    []Quota
		NextToken string `json:",omitempty"`
	}{Quotas: []Quota{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, found := 0, false
	for _, q := range s.quotas {
		if !s.serves(c.Region, q) {
			continue
		}
		found = found || q.ServiceCode == in.ServiceCode
		if q.unset || q.ServiceCode != in.ServiceCode || in.QuotaCode != "" && in.QuotaCode != q.QuotaCode {
			continue
		}
		if at++; at <= from {
			continue
		}
		if len(out.Quotas) == in.MaxResults {
			out.NextToken = strconv.Itoa(at - 1)
			break
		}
		out.Quotas = append(out.Quotas, q.Quota)
	}
	if !found {
		return nil, noSuch("The request failed because the specified service does not exist: %s has no quotas in the local account.",
			in.ServiceCode)
	}
	return out, nil
}
