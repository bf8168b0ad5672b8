// Package ssm simulates the Parameter Store of AWS Systems Manager: the public parameters that name EKS's machine
// images, and String parameters of the account, also as the resource type AWS::SSM::Parameter. There are no
// SecureString and StringList parameters, history, labels, policies or documents.
package ssm

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Config of the service. Region, Account and Clock are required.
type Config struct {
	Region, Account string
	// Partition defaults to aws.
	Partition string
	Clock     *clock.Clock
	// Images are AWS's public parameters by name: see EKSImageParameter.
	Images map[string]string
}

// EKSImageParameter returns the name of the public parameter with the recommended image for a Kubernetes minor version: the family is
// al2023 or bottlerocket, the variant "", nvidia, neuron, fips or nvidia-fips, and the architecture x86_64 or arm64.
//   - https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
//   - https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id-bottlerocket.html
func EKSImageParameter(version, family, variant, architecture string) string {
	if family == "bottlerocket" {
		flavor := version
		if variant != "" {
			flavor += "-" + variant
		}
		return "/aws/service/bottlerocket/aws-k8s-" + flavor + "/" + architecture + "/latest/image_id"
	}
	return "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2023/" + architecture + "/" + cmp.Or(variant, "standard") +
		"/recommended/image_id"
}

// Service is Systems Manager in one region of one account.
type Service struct {
	config Config

	mu         sync.Mutex
	parameters map[string]parameter
}

// parameter is a parameter of the account or, if public, of AWS.
type parameter struct {
	Name             string
	Type             string
	Value            string
	Version          int
	LastModifiedDate time.Time
	ARN              string
	DataType         string
}

// New returns a Parameter Store with the public parameters.
func New(config Config) *Service {
	config.Partition = cmp.Or(config.Partition, "aws")
	s := &Service{config: config, parameters: map[string]parameter{}}
	for name, value := range config.Images {
		s.parameters[name] = parameter{
			Name: name, Type: "String", Value: value, Version: 1, LastModifiedDate: config.Clock.Now(), ARN: s.arn(name), DataType: "text",
		}
	}
	return s
}

// arn returns the ARN of a parameter. AWS's parameters have no account. A leading slash occurs once.
func (s *Service) arn(name string) string {
	account := s.config.Account
	if public(name) {
		account = ""
	}
	return fmt.Sprintf("arn:%s:ssm:%s:%s:parameter/%s", s.config.Partition, s.config.Region, account, strings.TrimPrefix(name, "/"))
}

func public(name string) bool { return strings.HasPrefix(name, "/aws/service/") }

// Wire returns the API: https://docs.aws.amazon.com/systems-manager/latest/APIReference/Welcome.html
func (s *Service) Wire() *wire.Service {
	return &wire.Service{
		Name: "ssm", Protocol: wire.JSON11, Version: "2014-11-06", TargetPrefix: "AmazonSSM",
		Operations: map[string]wire.Operation{
			"GetParameter":        s.getParameter,
			"GetParameters":       s.getParameters,
			"GetParametersByPath": s.getParametersByPath,
			"PutParameter":        s.putParameter,
			"DeleteParameter":     s.deleteParameter,
		},
	}
}

// ReadParameter performs GetParameter for another service, as a caller.
func (s *Service) ReadParameter(_ context.Context, caller iam.Caller, name string) (string, error) {
	p, err := s.get(name, func(arn string) error { return caller.Authorize("ssm:GetParameter", arn, nil) })
	return p.Value, err
}

func (s *Service) get(name string, authorize func(arn string) error) (parameter, error) {
	// The name may be an ARN.
	if _, after, ok := strings.Cut(name, ":parameter/"); ok {
		name = "/" + after
	}
	if err := authorize(s.arn(name)); err != nil {
		return parameter{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.parameters[name]
	if !ok {
		return parameter{}, wire.Errorf("ParameterNotFound", "Parameter %s not found.", name)
	}
	return p, nil
}

func (s *Service) getParameter(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name           string
		WithDecryption bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	p, err := s.get(in.Name, c.Authorize)
	if err != nil {
		return nil, err
	}
	return struct{ Parameter parameter }{p}, nil
}

func (s *Service) getParameters(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Names          []string
		WithDecryption bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if len(in.Names) == 0 || len(in.Names) > 10 {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: Value at 'names' failed to satisfy constraint: Member must "+
			"have length between 1 and 10")
	}
	out := struct {
		Parameters        []parameter
		InvalidParameters []string
	}{[]parameter{}, []string{}}
	for _, name := range in.Names {
		if err := c.Authorize(s.arn(name)); err != nil {
			return nil, err
		}
		p, err := s.get(name, c.Authorize)
		if err != nil {
			out.InvalidParameters = append(out.InvalidParameters, name)
			continue
		}
		out.Parameters = append(out.Parameters, p)
	}
	return out, nil
}

func (s *Service) getParametersByPath(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Path, NextToken           string
		Recursive, WithDecryption bool
		MaxResults                *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(in.Path, "/") {
		return nil, wire.Errorf("ValidationException", "The parameter doesn't meet the parameter name requirements. "+
			"The parameter name must begin with a forward slash \"/\".")
	}
	if err := c.Authorize(s.arn(in.Path)); err != nil {
		return nil, err
	}
	limit := 10
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > 10 {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: Value '%d' at 'maxResults' failed to satisfy constraint: "+
			"Member must have value between 1 and 10", limit)
	}
	after := ""
	if in.NextToken != "" {
		decoded, err := base64.StdEncoding.DecodeString(in.NextToken)
		if err != nil {
			return nil, wire.Errorf("InvalidNextToken", "The specified token isn't valid.")
		}
		after = string(decoded)
	}
	prefix := strings.TrimSuffix(in.Path, "/") + "/"
	s.mu.Lock()
	defer s.mu.Unlock()
	out := struct {
		Parameters []parameter
		NextToken  string `json:",omitempty"`
	}{Parameters: []parameter{}}
	for _, name := range slices.Sorted(maps.Keys(s.parameters)) {
		rest, below := strings.CutPrefix(name, prefix)
		if !below || name <= after || !in.Recursive && strings.Contains(rest, "/") {
			continue
		}
		if len(out.Parameters) == limit {
			out.NextToken = base64.StdEncoding.EncodeToString([]byte(out.Parameters[limit-1].Name))
			break
		}
		out.Parameters = append(out.Parameters, s.parameters[name])
	}
	return out, nil
}

func (s *Service) putParameter(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		Name, Value, Type, Description, DataType, Tier string
		Overwrite                                      bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.arn(in.Name)); err != nil {
		return nil, err
	}
	if in.Type != "String" && in.Type != "" {
		return nil, wire.Unsupported("ssm", "parameters of the type "+in.Type)
	}
	version, err := s.put(in.Name, in.Value, in.Overwrite)
	if err != nil {
		return nil, err
	}
	return struct {
		Version int
		Tier    string
	}{version, "Standard"}, nil
}

// put validates and writes a String parameter, and returns its version.
func (s *Service) put(name, value string, overwrite bool) (int, error) {
	switch {
	case name == "" || value == "":
		return 0, wire.Errorf("ValidationException", "1 validation error detected: Value at 'name' or 'value' failed to satisfy constraint: "+
			"Member must not be empty")
	case strings.HasPrefix(name, "/aws") || strings.HasPrefix(name, "aws") || strings.HasPrefix(name, "ssm"):
		return 0, wire.Errorf("AccessDeniedException", "No access to reserved parameter name: %s.", name)
	case len(value) > 4096:
		return 0, wire.Errorf("ValidationException", "Standard tier parameters support a maximum parameter value of 4096 characters.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.parameters[name]
	if exists && !overwrite {
		return 0, wire.Errorf("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option "+
			"in the request to true.")
	}
	p := parameter{
		Name: name, Type: "String", Value: value, Version: old.Version + 1, LastModifiedDate: s.config.Clock.Now(), ARN: s.arn(name),
		DataType: "text",
	}
	s.parameters[name] = p
	return p.Version, nil
}

func (s *Service) deleteParameter(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ Name string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	p, err := s.get(in.Name, c.Authorize)
	if err != nil {
		return nil, err
	}
	if public(p.Name) {
		return nil, wire.Errorf("AccessDeniedException", "No access to reserved parameter name: %s.", in.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parameters, p.Name)
	return nil, nil
}
