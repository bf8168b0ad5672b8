package cloudformation

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// The read operations of the API.

// maxPage is the number of items in one response.
const maxPage = 100

// page returns a page of a list. token is the start of the page from an earlier response.
func page[T any](list []T, token string, size int) (items []T, next string, err error) {
	start := 0
	if token != "" {
		if start, err = strconv.Atoi(token); err != nil || start < 0 || start > len(list) {
			return nil, "", invalid("NextToken is not valid: %s", token)
		}
	}
	end := min(start+size, len(list))
	if end < len(list) {
		next = strconv.Itoa(end)
	}
	return slices.Clone(list[start:end]), next, nil
}

// StackInput names a stack.
type StackInput struct {
	StackName string
}

// StackPageInput names a stack and a page.
type StackPageInput struct {
	StackName, NextToken string
}

// DescribeStacksOutput of DescribeStacks.
type DescribeStacksOutput struct {
	Stacks    []Stack
	NextToken string `xml:",omitempty"`
}

// DescribeStacks describes one stack, or all that are not deleted. A deleted stack is found by its ID.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
func (s *Service) DescribeStacks(_ context.Context, caller iam.Caller, in *StackPageInput) (*DescribeStacksOutput, error) {
	if in.StackName == "" {
		if err := caller.Authorize("cloudformation:DescribeStacks", "*", nil); err != nil {
			return nil, err
		}
		all := s.Stacks()
		slices.Reverse(all)
		list, next, err := page(all, in.NextToken, maxPage)
		return &DescribeStacksOutput{Stacks: list, NextToken: next}, err
	}
	if err := s.authorize(caller, "DescribeStacks", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	return &DescribeStacksOutput{Stacks: []Stack{st.describe()}}, nil
}

// ListStacksInput of ListStacks.
type ListStacksInput struct {
	StackStatusFilter []string
	NextToken         string
}

// ListStacksOutput of ListStacks.
type ListStacksOutput struct {
	StackSummaries []StackSummary
	NextToken      string `xml:",omitempty"`
}

// ListStacks lists all stacks, including deleted ones, newest first.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStacks.html
func (s *Service) ListStacks(_ context.Context, caller iam.Caller, in *ListStacksInput) (*ListStacksOutput, error) {
	if err := caller.Authorize("cloudformation:ListStacks", "*", nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var summaries []StackSummary
	for _, st := range slices.Backward(s.stacks) {
		if len(in.StackStatusFilter) > 0 && !slices.Contains(in.StackStatusFilter, st.status) {
			continue
		}
		summaries = append(summaries, StackSummary{
			StackId: st.id, StackName: st.name, TemplateDescription: st.current.template.Description, StackStatus: st.status,
			StackStatusReason: st.reason, CreationTime: st.created, LastUpdatedTime: st.updated, DeletionTime: st.deleted,
			DriftInformation: DriftInformation{StackDriftStatus: "NOT_CHECKED"},
		})
	}
	list, next, err := page(summaries, in.NextToken, maxPage)
	return &ListStacksOutput{StackSummaries: list, NextToken: next}, err
}

// DescribeStackEventsOutput of DescribeStackEvents.
type DescribeStackEventsOutput struct {
	StackEvents []StackEvent
	NextToken   string `xml:",omitempty"`
}

// DescribeStackEvents lists a stack's events, newest first.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
func (s *Service) DescribeStackEvents(_ context.Context, caller iam.Caller, in *StackPageInput) (*DescribeStackEventsOutput, error) {
	if err := s.authorize(caller, "DescribeStackEvents", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, invalid("Stack [%s] does not exist", in.StackName)
	}
	// Pages count from the oldest event, so that new events do not shift them.
	end := len(st.events)
	if in.NextToken != "" {
		if end, err = strconv.Atoi(in.NextToken); err != nil || end < 0 || end > len(st.events) {
			return nil, invalid("NextToken is not valid: %s", in.NextToken)
		}
	}
	start := max(0, end-maxPage)
	events := slices.Clone(st.events[start:end])
	slices.Reverse(events)
	out := &DescribeStackEventsOutput{StackEvents: events}
	if start > 0 {
		out.NextToken = strconv.Itoa(start)
	}
	return out, nil
}

// DescribeStackResourcesInput of DescribeStackResources.
type DescribeStackResourcesInput struct {
	StackName, LogicalResourceId, PhysicalResourceId string
}

// DescribeStackResourcesOutput of DescribeStackResources.
type DescribeStackResourcesOutput struct {
	StackResources []StackResource
}

// DescribeStackResources lists up to 100 resources of a stack, found by its name or by the physical ID of a resource.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResources.html
func (s *Service) DescribeStackResources(_ context.Context, caller iam.Caller,
	in *DescribeStackResourcesInput) (*DescribeStackResourcesOutput, error) {
	if in.StackName == "" {
		if in.StackName = s.ownerOf(in.PhysicalResourceId); in.StackName == "" {
			return nil, invalid("Stack for %s does not exist", in.PhysicalResourceId)
		}
	}
	if err := s.authorize(caller, "DescribeStackResources", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	out := &DescribeStackResourcesOutput{}
	for _, name := range sortedKeys(st.resources) {
		if in.LogicalResourceId != "" && in.LogicalResourceId != name || len(out.StackResources) == maxPage {
			continue
		}
		r := st.resources[name]
		out.StackResources = append(out.StackResources, StackResource{
			StackId: st.id, StackName: st.name, LogicalResourceId: name, PhysicalResourceId: r.physicalID, ResourceType: r.resourceType,
			Timestamp: r.changed, ResourceStatus: r.status, ResourceStatusReason: r.reason, DriftInformation: notChecked,
		})
	}
	if in.LogicalResourceId != "" && len(out.StackResources) == 0 {
		return nil, invalid("Resource %s does not exist for stack %s", in.LogicalResourceId, st.name)
	}
	return out, nil
}

var notChecked = ResourceDriftInformation{StackResourceDriftStatus: "NOT_CHECKED"}

// ownerOf finds the stack of a physical resource. It returns an empty string if no stack has it.
func (s *Service) ownerOf(physicalID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.live {
		for _, r := range st.resources {
			if physicalID != "" && r.physicalID == physicalID && r.exists() {
				return st.id
			}
		}
	}
	return ""
}

// DescribeStackResourceInput of DescribeStackResource.
type DescribeStackResourceInput struct {
	StackName, LogicalResourceId string
}

// DescribeStackResourceOutput of DescribeStackResource.
type DescribeStackResourceOutput struct {
	StackResourceDetail StackResourceDetail
}

// DescribeStackResource describes one resource of a stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResource.html
func (s *Service) DescribeStackResource(_ context.Context, caller iam.Caller,
	in *DescribeStackResourceInput) (*DescribeStackResourceOutput, error) {
	if err := s.authorize(caller, "DescribeStackResource", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, invalid("Stack '%s' does not exist", in.StackName)
	}
	r := st.resources[in.LogicalResourceId]
	if r == nil {
		return nil, invalid("Resource %s does not exist for stack %s", in.LogicalResourceId, st.name)
	}
	metadata := ""
	if r.metadata != nil {
		encoded, _ := json.Marshal(r.metadata) // decoded JSON and YAML always marshals
		metadata = string(encoded)
	}
	return &DescribeStackResourceOutput{StackResourceDetail{
		StackId: st.id, StackName: st.name, LogicalResourceId: r.logicalID, PhysicalResourceId: r.physicalID, ResourceType: r.resourceType,
		LastUpdatedTimestamp: r.changed, ResourceStatus: r.status, ResourceStatusReason: r.reason, Metadata: metadata,
		DriftInformation: notChecked,
	}}, nil
}

// ListStackResourcesOutput of ListStackResources.
type ListStackResourcesOutput struct {
	StackResourceSummaries []StackResourceSummary
	NextToken              string `xml:",omitempty"`
}

// ListStackResources lists the resources of a stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStackResources.html
func (s *Service) ListStackResources(_ context.Context, caller iam.Caller, in *StackPageInput) (*ListStackResourcesOutput, error) {
	if err := s.authorize(caller, "ListStackResources", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	var summaries []StackResourceSummary
	for _, name := range sortedKeys(st.resources) {
		r := st.resources[name]
		summaries = append(summaries, StackResourceSummary{
			LogicalResourceId: name, PhysicalResourceId: r.physicalID, ResourceType: r.resourceType, LastUpdatedTimestamp: r.changed,
			ResourceStatus: r.status, ResourceStatusReason: r.reason, DriftInformation: notChecked,
		})
	}
	list, next, err := page(summaries, in.NextToken, maxPage)
	return &ListStackResourcesOutput{StackResourceSummaries: list, NextToken: next}, err
}

// Export as ListExports returns it.
type Export struct {
	ExportingStackId, Name, Value string
}

// ListExportsInput of ListExports.
type ListExportsInput struct {
	NextToken string
}

// ListExportsOutput of ListExports.
type ListExportsOutput struct {
	Exports   []Export
	NextToken string `xml:",omitempty"`
}

// ListExports lists the exports of all stacks.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListExports.html
func (s *Service) ListExports(_ context.Context, caller iam.Caller, in *ListExportsInput) (*ListExportsOutput, error) {
	if err := caller.Authorize("cloudformation:ListExports", "*", nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var exports []Export
	for _, name := range sortedKeys(s.live) {
		for _, output := range s.live[name].outputs {
			if output.ExportName != "" {
				exports = append(exports, Export{ExportingStackId: s.live[name].id, Name: output.ExportName, Value: output.OutputValue})
			}
		}
	}
	list, next, err := page(exports, in.NextToken, maxPage)
	return &ListExportsOutput{Exports: list, NextToken: next}, err
}

// ListImportsInput of ListImports.
type ListImportsInput struct {
	ExportName, NextToken string
}

// ListImportsOutput of ListImports.
type ListImportsOutput struct {
	Imports   []string
	NextToken string `xml:",omitempty"`
}

// ListImports lists the stacks that import an export.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListImports.html
func (s *Service) ListImports(_ context.Context, caller iam.Caller, in *ListImportsInput) (*ListImportsOutput, error) {
	if err := caller.Authorize("cloudformation:ListImports", "*", nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.importers(in.ExportName)
	if len(names) == 0 {
		return nil, wire.Errorf("ValidationError", "Export '%s' is not imported by any stack.", in.ExportName)
	}
	list, next, err := page(names, in.NextToken, maxPage)
	return &ListImportsOutput{Imports: list, NextToken: next}, err
}
