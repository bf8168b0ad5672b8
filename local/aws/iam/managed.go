package iam

// Managed policies: the account's own, and those of AWS that drover's templates attach.

import (
	"maps"
	"slices"
	"strings"
)

// awsManaged are AWS's policies by path and name. Some have documents: those of functions, of nodes and of the CDK's
// bootstrap roles, whose calls the local account evaluates. ReadOnlyAccess is the part of AWS's that concerns the simulated
// services. The others are attached to callers inside clusters (kubelets, add-ons), which make no calls here. They
// allow nothing. https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html
var awsManaged = map[string]string{
	"service-role/AWSLambdaBasicExecutionRole": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` +
		`"Action":["logs:CreateLogGroup","logs:CreateLogStream","logs:PutLogEvents"],"Resource":"*"}]}`,
	"AWSXRayDaemonWriteAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` +
		`"Action":["xray:PutTraceSegments","xray:PutTelemetryRecords","xray:GetSamplingRules","xray:GetSamplingTargets",` +
		`"xray:GetSamplingStatisticSummaries"],"Resource":["*"]}]}`,
	"AdministratorAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`,
	"AWSCloudFormationReadOnlyAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:Describe*",` +
		`"cloudformation:EstimateTemplateCost","cloudformation:Get*","cloudformation:List*","cloudformation:ValidateTemplate",` +
		`"cloudformation:Detect*"],"Resource":"*"}]}`,
	"ReadOnlyAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Resource":"*","Action":["autoscaling:Describe*",` +
		`"cloudformation:Describe*","cloudformation:Get*","cloudformation:List*","ec2:Describe*","ecr:Describe*","ecr:Get*","ecr:List*",` +
		`"eks:Describe*","eks:List*","events:Describe*","events:List*","iam:Get*","iam:List*","kms:Describe*","kms:Get*","kms:List*",` +
		`"lambda:Get*","lambda:List*","logs:Describe*","logs:FilterLogEvents","logs:Get*","s3:Get*","s3:List*","scheduler:Get*",` +
		`"scheduler:List*","servicequotas:Get*","servicequotas:List*","sns:Get*","sns:List*","sqs:Get*","sqs:List*","ssm:Describe*",` +
		`"ssm:Get*","ssm:List*","states:Describe*","states:Get*","states:List*","tag:Get*"]}]}`,
	// https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonS3ReadOnlyAccess.html
	"AmazonS3ReadOnlyAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:Get*","s3:List*","s3:Describe*",` +
		`"s3-object-lambda:Get*","s3-object-lambda:List*"],"Resource":"*"}]}`,
	"AmazonEKSClusterPolicy":                  allowsNothing,
	"AmazonEKSVPCResourceController":          allowsNothing,
	"AmazonEKSWorkerNodePolicy":               podIdentity,
	"AmazonEKSWorkerNodeMinimalPolicy":        podIdentity,
	"AmazonEKS_CNI_Policy":                    allowsNothing,
	"AmazonEC2ContainerRegistryPullOnly":      allowsNothing,
	"AmazonEC2ContainerRegistryReadOnly":      allowsNothing,
	"AmazonSSMManagedInstanceCore":            allowsNothing,
	"CloudWatchAgentServerPolicy":             allowsNothing,
	"service-role/AmazonEBSCSIDriverPolicy":   allowsNothing,
	"AmazonEBSCSIDriverPolicyV2":              allowsNothing,
	"service-role/AmazonEBSCSIDriverPolicyV2": allowsNothing,
	"service-role/AmazonEFSCSIDriverPolicy":   allowsNothing,
	"AWSXrayWriteOnlyAccess":                  allowsNothing,
}

// podIdentity is what the agent of pod identity calls with the role of its node. Kubelets make no calls here.
// https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonEKSWorkerNodePolicy.html
const podIdentity = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks-auth:AssumeRoleForPodIdentity","Resource":"*"}]}`

const allowsNothing = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"none:None","Resource":"arn:aws:none:::none"}]}`

// policy returns a managed policy by ARN. The caller holds the lock.
func (s *Service) policy(arn string) (*ManagedPolicy, error) {
	if p, ok := s.policies[arn]; ok {
		return p, nil
	}
	if rest, ok := strings.CutPrefix(arn, "arn:"+s.Partition+":iam::aws:policy/"); ok {
		if document, ok := awsManaged[rest]; ok {
			parsed, err := ParsePolicy(document, false)
			if err != nil {
				return nil, err
			}
			i := strings.LastIndex(rest, "/") + 1
			p := &ManagedPolicy{
				ARN: arn, Path: "/" + rest[:i], Name: rest[i:], ID: "ANPA" + strings.ToUpper(rest[i:]), Document: document, parsed: parsed,
			}
			s.policies[arn] = p
			return p, nil
		}
	}
	return nil, errorf(404, "NoSuchEntity", "Policy %s does not exist or is not attachable.", arn)
}

// ManagedPolicy returns a managed policy by ARN, or the error NoSuchEntity.
func (s *Service) ManagedPolicy(arn string) (ManagedPolicy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.policy(arn)
	if err != nil {
		return ManagedPolicy{}, err
	}
	return *p, nil
}

// ManagedPolicies returns the account's own policies by ARN.
func (s *Service) ManagedPolicies() []ManagedPolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []ManagedPolicy
	for _, arn := range slices.Sorted(maps.Keys(s.policies)) {
		if !strings.Contains(arn, ":iam::aws:") {
			list = append(list, *s.policies[arn])
		}
	}
	return list
}

// CreatePolicy creates a managed policy from Name, Path, Description, Document and Tags.
func (s *Service) CreatePolicy(p ManagedPolicy) (ManagedPolicy, error) {
	parsed, err := ParsePolicy(p.Document, false)
	if err != nil {
		return ManagedPolicy{}, err
	}
	if err := checkName("policyName", p.Name, 128); err != nil {
		return ManagedPolicy{}, err
	}
	if p.Path == "" {
		p.Path = "/"
	}
	p.ARN, p.ID, p.Created, p.parsed = s.arn("policy", p.Path, p.Name), "ANPA"+randomText(upper, 17), s.clock.Now(), parsed
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.policies[p.ARN]; ok {
		return ManagedPolicy{}, errorf(409, "EntityAlreadyExists", "A policy called %s already exists. Duplicate names are not allowed.", p.Name)
	}
	s.policies[p.ARN] = &p
	return p, nil
}

// SetPolicyDocument replaces the document of a managed policy of the account.
func (s *Service) SetPolicyDocument(arn, document string) error {
	parsed, err := ParsePolicy(document, false)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.policies[arn]
	if !ok || strings.Contains(arn, ":iam::aws:") {
		return errorf(404, "NoSuchEntity", "Policy %s was not found.", arn)
	}
	p.Document, p.parsed = document, parsed
	return nil
}

// DeletePolicy deletes a managed policy that is not attached.
func (s *Service) DeletePolicy(arn string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.policies[arn]; !ok || strings.Contains(arn, ":iam::aws:") {
		return errorf(404, "NoSuchEntity", "Policy %s was not found.", arn)
	}
	for _, r := range s.roles {
		if slices.Contains(r.Attached, arn) || r.Boundary == arn {
			return errorf(409, "DeleteConflict", "Cannot delete a policy attached to entities.")
		}
	}
	delete(s.policies, arn)
	return nil
}
