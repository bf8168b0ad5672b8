package cloudformation

import "time"

// The shapes of the API, with the names of the API reference.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Types.html

//revive:disable:var-naming members are spelled as AWS spells them

// Tag of a stack.
type Tag struct{ Key, Value string }

// Parameter of a stack.
type Parameter struct {
	ParameterKey     string
	ParameterValue   string `xml:",omitempty"`
	UsePreviousValue bool   `xml:",omitempty"`
	// ResolvedValue of a parameter from Systems Manager.
	ResolvedValue string `xml:",omitempty"`
}

// Output of a stack.
type Output struct {
	OutputKey, OutputValue string
	Description            string `xml:",omitempty"`
	ExportName             string `xml:",omitempty"`
}

// DriftInformation reports that drift was not checked.
type DriftInformation struct {
	StackDriftStatus string
}

// Stack as DescribeStacks returns it.
type Stack struct {
	StackId, StackName          string
	Description                 string `xml:",omitempty"`
	StackStatus                 string
	StackStatusReason           string    `xml:",omitempty"`
	CreationTime                time.Time `xml:",omitempty"`
	LastUpdatedTime             time.Time `xml:",omitempty"`
	DeletionTime                time.Time `xml:",omitempty"`
	ChangeSetId                 string    `xml:",omitempty"`
	Capabilities                []string
	Parameters                  []Parameter
	Outputs                     []Output
	Tags                        []Tag
	NotificationARNs            []string
	RoleARN                     string `xml:",omitempty"`
	DisableRollback             bool
	EnableTerminationProtection bool
	RetainExceptOnCreate        bool             `xml:",omitempty"`
	TimeoutInMinutes            int              `xml:",omitempty"`
	DeletionMode                string           `xml:",omitempty"`
	DriftInformation            DriftInformation `xml:",omitempty"`
}

// StackSummary as ListStacks returns it.
type StackSummary struct {
	StackId, StackName  string
	TemplateDescription string `xml:",omitempty"`
	StackStatus         string
	StackStatusReason   string `xml:",omitempty"`
	CreationTime        time.Time
	LastUpdatedTime     time.Time
	DeletionTime        time.Time
	DriftInformation    DriftInformation
}

// StackEvent is a status of a stack or of one of its resources.
type StackEvent struct {
	EventId, StackId, StackName string
	LogicalResourceId           string
	PhysicalResourceId          string
	ResourceType                string
	Timestamp                   time.Time
	ResourceStatus              string
	ResourceStatusReason        string `xml:",omitempty"`
	ResourceProperties          string `xml:",omitempty"`
	ClientRequestToken          string `xml:",omitempty"`
}

const stackType = "AWS::CloudFormation::Stack"

// ofStack reports whether the event is about the stack itself.
func (e StackEvent) ofStack() bool {
	return e.ResourceType == stackType && e.PhysicalResourceId == e.StackId
}

// StackResource as DescribeStackResources returns it.
type StackResource struct {
	StackId, StackName   string
	LogicalResourceId    string
	PhysicalResourceId   string `xml:",omitempty"`
	ResourceType         string
	Timestamp            time.Time
	ResourceStatus       string
	ResourceStatusReason string `xml:",omitempty"`
	DriftInformation     ResourceDriftInformation
}

// ResourceDriftInformation reports that drift was not checked.
type ResourceDriftInformation struct {
	StackResourceDriftStatus string
}

// StackResourceSummary as ListStackResources returns it.
type StackResourceSummary struct {
	LogicalResourceId    string
	PhysicalResourceId   string `xml:",omitempty"`
	ResourceType         string
	LastUpdatedTimestamp time.Time
	ResourceStatus       string
	ResourceStatusReason string `xml:",omitempty"`
	DriftInformation     ResourceDriftInformation
}

// StackResourceDetail as DescribeStackResource returns it.
type StackResourceDetail struct {
	StackId, StackName   string
	LogicalResourceId    string
	PhysicalResourceId   string `xml:",omitempty"`
	ResourceType         string
	LastUpdatedTimestamp time.Time
	ResourceStatus       string
	ResourceStatusReason string `xml:",omitempty"`
	Metadata             string `xml:",omitempty"`
	DriftInformation     ResourceDriftInformation
}

// Change of a change set.
type Change struct {
	Type           string
	ResourceChange ResourceChange
}

// ResourceChange is the effect of a change set on one resource.
type ResourceChange struct {
	Action             string
	PolicyAction       string `xml:",omitempty"`
	LogicalResourceId  string
	PhysicalResourceId string `xml:",omitempty"`
	ResourceType       string
	Replacement        string `xml:",omitempty"`
	Scope              []string
	Details            []ResourceChangeDetail
	BeforeContext      string `xml:",omitempty"`
	AfterContext       string `xml:",omitempty"`
}

// ResourceChangeDetail is a reason of a change.
type ResourceChangeDetail struct {
	Target        ResourceTargetDefinition
	Evaluation    string
	ChangeSource  string
	CausingEntity string `xml:",omitempty"`
}

// ResourceTargetDefinition is the changed part of a resource.
type ResourceTargetDefinition struct {
	Attribute           string
	Name                string `xml:",omitempty"`
	RequiresRecreation  string `xml:",omitempty"`
	Path                string `xml:",omitempty"`
	BeforeValue         string `xml:",omitempty"`
	AfterValue          string `xml:",omitempty"`
	AttributeChangeType string `xml:",omitempty"`
}

// ChangeSetSummary as ListChangeSets returns it.
type ChangeSetSummary struct {
	ChangeSetId, ChangeSetName string
	StackId, StackName         string
	Description                string `xml:",omitempty"`
	CreationTime               time.Time
	Status                     string
	StatusReason               string `xml:",omitempty"`
	ExecutionStatus            string
	IncludeNestedStacks        bool
}
