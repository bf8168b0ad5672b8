package lambda

// CloudFormation resource types. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_Lambda.html

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{
		"AWS::Lambda::Function":          functionResource{s},
		"AWS::Lambda::Permission":        permissionResource{s},
		"AWS::Lambda::EventInvokeConfig": eventConfigResource{s},
	}
}

// Tagged returns the functions and their tags.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []tagging.Tagged
	for _, f := range s.functions {
		f.mu.Lock()
		all = append(all, tagging.Tagged{ARN: f.arn, Tags: f.settings.Tags})
		f.mu.Unlock()
	}
	return all
}

type functionResource struct{ s *Service }

func (functionResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Architectures": resource.InPlace, "Code": resource.InPlace, "DeadLetterConfig": resource.InPlace, "Description": resource.InPlace,
			"Environment": resource.InPlace, "EphemeralStorage": resource.InPlace, "FunctionName": resource.Replaces, "Handler": resource.InPlace,
			"KmsKeyArn": resource.InPlace, "LoggingConfig": resource.InPlace, "MemorySize": resource.InPlace, "PackageType": resource.Replaces,
			"ReservedConcurrentExecutions": resource.InPlace, "Role": resource.InPlace, "Runtime": resource.InPlace, "Tags": resource.InPlace,
			"Timeout": resource.InPlace, "TracingConfig": resource.InPlace, "VpcConfig": resource.InPlace,
		},
		Required:   []string{"Code", "Role"},
		Attributes: []string{"Arn"},
	}
}

// functionProperties are the settings in the spelling of templates.
type functionProperties struct {
	FunctionName, Description, Role, Runtime, Handler, PackageType, KmsKeyArn string
	Architectures                                                             []string
	MemorySize, Timeout                                                       int
	Environment                                                               *struct{ Variables map[string]any }
	DeadLetterConfig                                                          *deadLetter
	TracingConfig                                                             *tracing
	LoggingConfig                                                             *logging
	EphemeralStorage                                                          *storage
	ReservedConcurrentExecutions                                              *int
	VpcConfig                                                                 *struct {
		SubnetIds, SecurityGroupIds []string // AWS's spelling
		Ipv6AllowedForDualStack     bool
	}
	Tags []resource.Tag
	// AWS's spelling
	Code struct{ S3Bucket, S3Key, S3ObjectVersion, ImageUri string }
}

func decodeFunction(r resource.Request) (settings, code, error) {
	var p functionProperties
	if err := resource.Decode(r.Properties, &p); err != nil {
		return settings{}, code{}, err
	}
	c := settings{
		FunctionName: p.FunctionName, Description: p.Description, Role: p.Role, Runtime: p.Runtime, Handler: p.Handler,
		Architectures: p.Architectures,
		PackageType:   p.PackageType, MemorySize: p.MemorySize, Timeout: p.Timeout, DeadLetterConfig: p.DeadLetterConfig,
		TracingConfig: p.TracingConfig,
		LoggingConfig: p.LoggingConfig, EphemeralStorage: p.EphemeralStorage, KMSKeyArn: p.KmsKeyArn, Tags: tagging.Merge(r.Tags, p.Tags),
		ReservedInstances: p.ReservedConcurrentExecutions,
	}
	if p.Environment != nil {
		c.Environment = &variables{map[string]string{}}
		for name, value := range p.Environment.Variables {
			text, ok := value.(string)
			if !ok {
				return c, code{}, invalid("#/Environment/Variables/%s: expected type: String", name)
			}
			c.Environment.Variables[name] = text
		}
	}
	if v := p.VpcConfig; v != nil {
		c.VPCConfig = &vpcConfig{SubnetIDs: v.SubnetIds, SecurityGroupIDs: v.SecurityGroupIds, Ipv6AllowedForDualStack: v.Ipv6AllowedForDualStack}
	}
	if c.FunctionName == "" {
		c.FunctionName = or(r.PhysicalID, generateName(r))
	}
	return c, code{S3Bucket: p.Code.S3Bucket, S3Key: p.Code.S3Key, S3ObjectVersion: p.Code.S3ObjectVersion, ImageUri: p.Code.ImageUri}, nil
}

// generateName derives a name from the stack and the logical ID, of at most 64 characters.
func generateName(r resource.Request) string {
	cut := func(s string, n int) string { return s[:min(len(s), n)] }
	return cut(r.StackName, 24) + "-" + cut(r.LogicalID, 24) + "-" + uuid.NewString()[:12]
}

func (p functionResource) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	c, from, err := decodeFunction(r)
	if err != nil {
		return resource.Result{}, err
	}
	reserved := c.ReservedInstances
	c.ReservedInstances = nil
	f, err := p.s.create(ctx, r.Caller, c, from)
	if err != nil {
		return resource.Result{}, err
	}
	err = p.waitUntilStable(ctx, r, f)
	if err == nil && reserved != nil {
		err = p.s.setConcurrency(r.Caller, c.FunctionName, reserved)
	}
	return functionResult(f), err
}

// waitUntilStable waits until a function is stable, as the resource handler does with GetFunction.
func (p functionResource) waitUntilStable(ctx context.Context, r resource.Request, f *function) error {
	name := f.configuration().FunctionName
	if err := r.Caller.Authorize("lambda:GetFunction", f.arn, p.s.functionContext(name)); err != nil {
		return err
	}
	return p.s.awaitSettled(ctx, f)
}

func functionResult(f *function) resource.Result {
	return resource.Result{PhysicalID: f.configuration().FunctionName, Attributes: map[string]any{"Arn": f.arn}}
}

func (p functionResource) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	c, from, err := decodeFunction(r)
	if err != nil {
		return resource.Result{}, err
	}
	f, err := p.s.find(r.PhysicalID)
	if err != nil {
		return resource.Result{}, err
	}
	had := f.configuration()
	reserved := c.ReservedInstances
	if !reflect.DeepEqual(r.Old["Code"], r.Properties["Code"]) {
		if _, err = p.s.updateCode(ctx, r.Caller, r.PhysicalID, from); err != nil {
			return resource.Result{}, err
		}
	}
	if changesConfiguration(r) {
		_, err = p.s.updateSettings(r.Caller, r.PhysicalID, func(to *settings) error {
			c.ReservedInstances, c.Tags = had.ReservedInstances, to.Tags
			*to = c
			return nil
		})
	}
	if err == nil {
		err = p.waitUntilStable(ctx, r, f)
	}
	if err == nil {
		err = p.retag(r, f)
	}
	if err != nil {
		return resource.Result{}, err
	}
	if (reserved == nil) != (f.configuration().ReservedInstances == nil) || reserved != nil {
		err = p.s.setConcurrency(r.Caller, r.PhysicalID, reserved)
	}
	return functionResult(f), err
}

// changesConfiguration reports whether an update changes a property that UpdateFunctionConfiguration sets.
func changesConfiguration(r resource.Request) bool {
	for name := range (functionResource{}).Schema().Properties {
		switch name {
		case "Code", "Tags", "ReservedConcurrentExecutions":
			continue
		}
		if !reflect.DeepEqual(r.Old[name], r.Properties[name]) {
			return true
		}
	}
	return false
}

// retag gives a function the tags of the stack and of the resource.
func (p functionResource) retag(r resource.Request, f *function) error {
	c, _, err := decodeFunction(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	added, removed := map[string]string{}, []string{}
	for k, v := range c.Tags {
		if had, ok := f.settings.Tags[k]; (!ok || had != v) && !strings.HasPrefix(k, "aws:") {
			added[k] = v
		}
	}
	for k := range f.settings.Tags {
		if _, ok := c.Tags[k]; !ok && !strings.HasPrefix(k, "aws:") {
			removed = append(removed, k)
		}
	}
	f.mu.Unlock()
	slices.Sort(removed)
	if len(added) > 0 {
		err = p.s.tag(r.Caller, r.PhysicalID, added)
	}
	if err == nil && len(removed) > 0 {
		err = p.s.untag(r.Caller, r.PhysicalID, removed)
	}
	return err
}

// Delete deletes the function. If the caller may describe network interfaces, it waits until Lambda has deleted those of the function:
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lambda-function-vpcconfig.html
func (p functionResource) Delete(ctx context.Context, r resource.Request) error {
	f, err := p.s.find(r.PhysicalID)
	if err != nil {
		return ignoreNotFound(err)
	}
	vpc := f.configuration().VPCConfig
	if err := p.s.remove(r.Caller, r.PhysicalID); err != nil {
		return ignoreNotFound(err)
	}
	if vpc == nil || r.Caller.Authorize("ec2:DescribeNetworkInterfaces", "*", nil) != nil {
		return nil
	}
	return p.s.awaitRelease(ctx, vpc)
}

// ignoreNotFound drops the error that a resource to delete does not exist.
func ignoreNotFound(err error) error {
	var e *iam.Error
	if errors.As(err, &e) && e.HTTPStatus() == http.StatusNotFound {
		return nil
	}
	return err
}

type permissionResource struct{ s *Service }

func (permissionResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"Action": resource.Replaces, "FunctionName": resource.Replaces, "Principal": resource.Replaces,
			"SourceAccount": resource.Replaces, "SourceArn": resource.Replaces,
		},
		Required:   []string{"Action", "FunctionName", "Principal"},
		Attributes: []string{"Id"},
	}
}

func (p permissionResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	var in permission
	var properties struct{ Action, FunctionName, Principal, SourceAccount, SourceArn string }
	if err := resource.Decode(r.Properties, &properties); err != nil {
		return resource.Result{}, err
	}
	in = permission{
		FunctionName: properties.FunctionName, StatementID: generateName(r), Action: properties.Action, Principal: properties.Principal,
		SourceArn: properties.SourceArn, SourceAccount: properties.SourceAccount,
	}
	f, err := p.s.find(in.FunctionName)
	if err != nil {
		return resource.Result{}, err
	}
	if err := r.Caller.Authorize("lambda:AddPermission", f.arn, nil); err != nil {
		return resource.Result{}, err
	}
	if _, err := f.addPermission(in); err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: in.StatementID, Attributes: map[string]any{"Id": in.StatementID}}, nil
}

func (permissionResource) Update(context.Context, resource.Request) (resource.Result, error) {
	return resource.Result{}, errors.New("every property of a permission replaces it")
}

func (p permissionResource) Delete(_ context.Context, r resource.Request) error {
	name, _ := r.Properties["FunctionName"].(string)
	f, err := p.s.find(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if err := r.Caller.Authorize("lambda:RemovePermission", f.arn, nil); err != nil {
		return err
	}
	f.removePermission(r.PhysicalID)
	return nil
}

type eventConfigResource struct{ s *Service }

func (eventConfigResource) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"DestinationConfig": resource.InPlace, "FunctionName": resource.Replaces, "MaximumEventAgeInSeconds": resource.InPlace,
			"MaximumRetryAttempts": resource.InPlace, "Qualifier": resource.Replaces,
		},
		Required: []string{"FunctionName", "Qualifier"},
	}
}

func (p eventConfigResource) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	var in struct {
		FunctionName, Qualifier  string
		MaximumEventAgeInSeconds *int
		MaximumRetryAttempts     *int
		DestinationConfig        *destinationConfig
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	name, err := p.s.name(qualifiedName(in.FunctionName, in.Qualifier))
	if err != nil {
		return resource.Result{}, err
	}
	err = p.s.setEventConfig(r.Caller, name, &eventConfig{
		MaximumRetryAttempts: in.MaximumRetryAttempts, MaximumEventAgeInSeconds: in.MaximumEventAgeInSeconds,
		DestinationConfig: in.DestinationConfig,
	})
	return resource.Result{PhysicalID: name + "|" + in.Qualifier}, err
}

func (p eventConfigResource) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	return p.Create(ctx, r)
}

func (p eventConfigResource) Delete(_ context.Context, r resource.Request) error {
	function, _ := r.Properties["FunctionName"].(string)
	name, err := p.s.name(function)
	if err != nil {
		return err
	}
	return ignoreNotFound(p.s.setEventConfig(r.Caller, name, nil))
}
