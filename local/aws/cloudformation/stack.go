package cloudformation

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/engine/resource"
)

// The state of a stack: its revisions, resources and events. Service.mu guards all of it.

// Statuses of stacks and resources. Resources use those of CREATE, UPDATE and DELETE.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
const (
	createInProgress = "CREATE_IN_PROGRESS"
	createFailed     = "CREATE_FAILED"
	createComplete   = "CREATE_COMPLETE"

	rollbackInProgress = "ROLLBACK_IN_PROGRESS"
	rollbackFailed     = "ROLLBACK_FAILED"
	rollbackComplete   = "ROLLBACK_COMPLETE"

	updateInProgress = "UPDATE_IN_PROGRESS"
	updateCleanup    = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	updateFailed     = "UPDATE_FAILED"
	updateComplete   = "UPDATE_COMPLETE"

	updateRollbackInProgress = "UPDATE_ROLLBACK_IN_PROGRESS"
	updateRollbackCleanup    = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
	updateRollbackFailed     = "UPDATE_ROLLBACK_FAILED"
	updateRollbackComplete   = "UPDATE_ROLLBACK_COMPLETE"

	deleteInProgress = "DELETE_IN_PROGRESS"
	deleteFailed     = "DELETE_FAILED"
	deleteComplete   = "DELETE_COMPLETE"
	deleteSkipped    = "DELETE_SKIPPED"

	reviewInProgress = "REVIEW_IN_PROGRESS"
)

type stack struct {
	id, name                  string
	status, reason            string
	created, updated, deleted time.Time

	// current is the latest revision. previous is the revision that a rollback of the running update restores.
	current, previous *revision
	resources         map[string]*stackResource
	// leftovers are physical resources without a place in the stack. They wait for cleanup.
	leftovers []*leftover
	outputs   []Output
	events    []StackEvent

	roleARN         string
	protected       bool
	disableRollback bool
	onFailure       string
	timeout         int
	changeSetID     string
	deletionMode    string
	policy          *stackPolicy
	// tokens are the used client request tokens, with the request of each.
	tokens  map[string]string
	running *operation
}

// revision is a template with parameters and tags.
type revision struct {
	body         string
	template     *template.Template
	given        []Parameter
	values       map[string]any
	tags         map[string]string
	capabilities []string
	// retainExceptOnCreate makes Retain policies delete what a failed operation created.
	retainExceptOnCreate bool
	// imports are the exports that its values use. Service.mu guards them.
	imports map[string]bool
	scope   template.Scope
}

// stackResource is a physical resource of a stack, which may not exist yet.
type stackResource struct {
	logicalID, resourceType string
	physicalID, ref         string
	attributes              map[string]any
	properties              map[string]any
	tags                    map[string]string
	dependsOn               []string
	status, reason          string
	changed                 time.Time
	deletionPolicy          string
	updateReplacePolicy     string
	metadata                any
	// definition is the evaluated rest of the resource in the template, to detect changes.
	definition template.Resource
	// replaced is the physical resource that this one replaced, until cleanup.
	replaced *stackResource
	// before has the properties at the start of the running update. A rollback restores these values, and does not evaluate them again. nil if
	// no update has changed them.
	before map[string]any
	// unsure reports whether an update failed midway: the properties may be neither the old nor the new ones.
	unsure bool
	// signals reach the provider while an operation runs. Otherwise it is nil.
	signals  chan resource.Signal
	signaled map[string]bool
}

// exists reports whether the physical resource exists or may exist.
func (r *stackResource) exists() bool {
	return r != nil && r.status != deleteComplete && r.status != deleteSkipped
}

// usable reports whether other resources can refer to it.
func (r *stackResource) usable() bool {
	return r.exists() && r.physicalID != "" && r.status != createFailed
}

// setStack changes the status of a stack. The caller holds s.mu.
func (s *Service) setStack(st *stack, status, reason, token string) {
	st.status, st.reason = status, reason
	now := s.now()
	switch status {
	case updateInProgress:
		st.updated = now
	case deleteInProgress, deleteComplete:
		st.deleted = now
	}
	s.addEvent(st, StackEvent{
		EventId: newID(), LogicalResourceId: st.name, PhysicalResourceId: st.id, ResourceType: stackType,
		ResourceStatus: status, ResourceStatusReason: reason, ClientRequestToken: token,
	})
}

// setResource changes the status of a resource. The caller holds s.mu.
func (s *Service) setResource(st *stack, r *stackResource, status, reason, token string) {
	r.status, r.reason, r.changed = status, reason, s.now()
	properties := ""
	if r.properties != nil {
		encoded, _ := json.Marshal(r.properties) // decoded JSON and YAML always marshals
		properties = string(encoded)
	}
	s.addEvent(st, StackEvent{
		EventId: r.logicalID + "-" + status + "-" + newID(), LogicalResourceId: r.logicalID, PhysicalResourceId: r.physicalID,
		ResourceType: r.resourceType, ResourceStatus: status, ResourceStatusReason: reason, ResourceProperties: properties,
		ClientRequestToken: token,
	})
}

func (s *Service) addEvent(st *stack, event StackEvent) {
	event.StackId, event.StackName, event.Timestamp = st.id, st.name, s.now()
	st.events = append(st.events, event)
	s.outbox.put(event)
}

// describe returns the stack as in DescribeStacks.
func (st *stack) describe() Stack {
	return Stack{
		StackId: st.id, StackName: st.name, Description: st.current.template.Description, StackStatus: st.status,
		StackStatusReason: st.reason, CreationTime: st.created, LastUpdatedTime: st.updated, DeletionTime: st.deleted,
		ChangeSetId: st.changeSetID, Capabilities: st.current.capabilities, Parameters: st.current.describeParameters(),
		Outputs: slices.Clone(st.outputs), Tags: tagList(st.current.tags), NotificationARNs: []string{}, RoleARN: st.roleARN,
		DisableRollback: st.disableRollback, EnableTerminationProtection: st.protected,
		RetainExceptOnCreate: st.current.retainExceptOnCreate, TimeoutInMinutes: st.timeout, DeletionMode: st.deletionMode,
		DriftInformation: DriftInformation{StackDriftStatus: "NOT_CHECKED"},
	}
}

// noEcho replaces the value of a parameter that must not be shown.
const noEcho = "****"

func (r *revision) describeParameters() []Parameter {
	list := make([]Parameter, 0, len(r.given))
	for _, parameter := range r.given {
		declared := r.template.Parameters[parameter.ParameterKey]
		if declared.NoEcho {
			parameter.ParameterValue, parameter.ResolvedValue = noEcho, ""
		}
		list = append(list, parameter)
	}
	return list
}

func tagList(tags map[string]string) []Tag {
	list := make([]Tag, 0, len(tags))
	for _, key := range sortedKeys(tags) {
		list = append(list, Tag{Key: key, Value: tags[key]})
	}
	return list
}

// resourceTags returns the tags for the stack's resources.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
func (st *stack) resourceTags(r *revision, logicalID string) map[string]string {
	tags := maps.Clone(r.tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags["aws:cloudformation:stack-name"] = st.name
	tags["aws:cloudformation:stack-id"] = st.id
	tags["aws:cloudformation:logical-id"] = logicalID
	return tags
}
