package stack

// ChangeSet is a CloudFormation change set that is ready to be read and executed.
type ChangeSet struct {
	Name    string
	Changes []ResourceChange
	// Empty reports whether CloudFormation found nothing to change.
	Empty bool
}

// ResourceChange is what a change set does to one resource.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChange.html
type ResourceChange struct {
	// LogicalID and Type as the template has them.
	LogicalID, Type string
	Action          Action
	Replacement     Replacement
	Details         []ChangeDetail
}

// Action on a resource. CloudFormation may add others.
type Action string

// The actions that drover knows.
const (
	ActionAdd     Action = "Add"
	ActionModify  Action = "Modify"
	ActionRemove  Action = "Remove"
	ActionImport  Action = "Import"
	ActionDynamic Action = "Dynamic"
)

// Replacement of a modified resource: "" if CloudFormation does not state it.
type Replacement string

// The kinds of Replacement.
const (
	ReplacementTrue        Replacement = "True"
	ReplacementFalse       Replacement = "False"
	ReplacementConditional Replacement = "Conditional"
)

// ChangeDetail is why a change set changes a property of a resource.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChangeDetail.html
type ChangeDetail struct {
	// Property is the name of the changed property, or "" for an attribute such as Tags.
	Property string
	// Recreation is CloudFormation's RequiresRecreation of the property.
	Recreation Recreation
	// FromAttribute reports whether the value is an attribute of another resource that is known only during the update.
	FromAttribute bool
	// Cause is the entity that the value comes from, such as Role.Arn.
	Cause string
}

// Recreation is CloudFormation's RequiresRecreation: whether the change of one property replaces the resource. Replacement is the result of
// all properties.
type Recreation string

// The kinds of Recreation.
const (
	RecreationNever         Recreation = "Never"
	RecreationConditionally Recreation = "Conditionally"
	RecreationAlways        Recreation = "Always"
)
