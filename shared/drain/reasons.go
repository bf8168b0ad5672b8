package drain

// Code is the kind of a reason why a pod is blocked.
type Code int

// The codes.
const (
	// BudgetEmpty: the pod's disruption budget allows no disruption now.
	BudgetEmpty Code = iota + 1
	// ManyBudgets: the pod is under more than one disruption budget.
	ManyBudgets
	// Unmanaged: no controller replaces the pod, and the policy waits for such pods.
	Unmanaged
	// KeepsEmptyDir: the pod has data in an emptyDir, and the policy keeps it.
	KeepsEmptyDir
	// ReadinessChanges: the pod was not counted by its budget when the request was sent, and the API server counted it.
	ReadinessChanges
	// BudgetChanges: the budget was written between the request and its response.
	BudgetChanges
	// Conflict: the eviction conflicted with another write.
	Conflict
	// Overload: the API server limits requests.
	Overload
	// NamespaceTerminating: the API server refuses evictions in a namespace that is being deleted.
	NamespaceTerminating
	// Refused: the API server refuses the eviction. The reason has its message.
	Refused
	// Failed: the API server failed. The reason has its message.
	Failed
)

// texts are the words of each code for users. The runbook explains those that may last.
var texts = map[Code]string{
	BudgetEmpty:          "its disruption budget allows no disruption now",
	ManyBudgets:          "it is under more than one disruption budget, which the eviction API refuses",
	Unmanaged:            "no controller would replace it, and unmanagedPods is Wait",
	KeepsEmptyDir:        "it has data in an emptyDir, and deleteEmptyDirData is false",
	ReadinessChanges:     "its readiness is changing",
	BudgetChanges:        "its disruption budget is changing",
	Conflict:             "its eviction conflicted with another change",
	Overload:             "the API server limits requests",
	NamespaceTerminating: "its namespace is being deleted, and the pod with it",
	Refused:              "the API server refuses its eviction",
	Failed:               "the API server failed",
}

// String returns the words for users.
func (c Code) String() string { return texts[c] }

// passes reports whether a reason may pass within seconds: the API server fails, or other clients write the same objects.
func (c Code) passes() bool {
	switch c {
	case ReadinessChanges, BudgetChanges, Conflict, Overload, Failed:
		return true
	}
	return false
}

// Lasting returns the codes that may last. The runbook explains each.
func Lasting() []Code {
	return []Code{BudgetEmpty, ManyBudgets, Unmanaged, KeepsEmptyDir, Overload, NamespaceTerminating, Refused, Failed}
}

// Reason is why a pod is blocked. The zero value is no reason.
type Reason struct {
	Code Code
	// Detail is the message of the API server, if it refused or failed.
	Detail string
}

// String returns the words for users, with the detail.
func (r Reason) String() string {
	if r.Detail == "" {
		return r.Code.String()
	}
	return r.Code.String() + ": " + r.Detail
}

// Blocked is a pod that cannot leave now.
type Blocked struct {
	Pod string
	Why Reason
	// Budgets that block the pod.
	Budgets []string
}
