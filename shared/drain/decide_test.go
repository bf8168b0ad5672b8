package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// patient evicts everything and never forces.
var patient = Policy{OnTimeout: Wait, DeleteEmptyDirData: true, UnmanagedPods: EvictUnmanaged}

// pod of a controller, Ready, with 30 s of grace.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func withOwner(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
}
func orphan(p *corev1.Pod) { p.OwnerReferences = nil }
func mirror(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
}
func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}
func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}
func deletedAt(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { at := metav1.NewTime(now.Add(-ago)); p.DeletionTimestamp = &at }
}
func withLabel(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}
func in(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }
func important(p *corev1.Pod)               { priority := int32(2000000000); p.Spec.Priority = &priority }

// budget selects the web pods and allows some disruptions.
func budget(name string, allowed int32, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: allowed, ExpectedPods: 10, DesiredHealthy: 9, CurrentHealthy: 9 + allowed,
		},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func selects(s *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = s }
}
func ofNamespace(n string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Namespace = n }
}

// view of pods and budgets.
func view(pods []*corev1.Pod, budgets ...*policyv1.PodDisruptionBudget) View {
	v := View{Pods: map[types.UID]*Pod{}, Budgets: map[Key]*Budget{}, Tries: map[types.UID]Try{}}
	for _, p := range pods {
		v.Pods[p.UID] = NewPod(p)
	}
	for _, b := range budgets {
		read := NewBudget(b)
		v.Budgets[read.Key] = read
	}
	return v
}

func sentLines(d Decision) []string {
	out := []string{}
	for _, r := range d.Send {
		text := "evict"
		if r.Forced {
			text = "delete"
		}
		text += " " + r.Pod.Name
		if r.Grace > 0 {
			text += fmt.Sprintf(" in %ds", r.Grace)
		}
		out = append(out, text)
	}
	return out
}

func TestDecide(t *testing.T) {
	var none []string
	with := func(change func(*Policy)) Policy { p := patient; change(&p); return p }
	forced := with(func(p *Policy) { p.Timeout, p.OnTimeout = 600, Force })
	always := policyv1.AlwaysAllow
	for name, c := range map[string]struct {
		policy  Policy
		after   time.Duration // since the start
		view    View
		room    int
		send    []string
		blocked []string // "pod: why"
		left    int
		stuck   []string
		over    bool
	}{
		"pods under no budget leave at once": {
			policy: patient, view: view([]*corev1.Pod{pod("a"), pod("b"), pod("c")}), room: 9, send: []string{"evict a", "evict b", "evict c"},
			blocked: none, left: 3, stuck: none,
		},
		"as many as room allows": {
			policy: patient, view: view([]*corev1.Pod{pod("a"), pod("b"), pod("c")}), room: 2, send: []string{"evict a", "evict b"},
			blocked: none, left: 3, stuck: none,
		},
		"none without room": {
			policy: patient, view: view([]*corev1.Pod{pod("a")}), room: -1, send: []string{}, blocked: none, left: 1, stuck: none,
		},
		"pods with high priority leave last": {
			policy: patient, view: view([]*corev1.Pod{pod("a", important), pod("b")}), room: 9, send: []string{"evict b", "evict a"},
			blocked: none, left: 2, stuck: none,
		},
		"mirror, static, daemon and finished pods stay": {
			policy: patient, view: view([]*corev1.Pod{
				pod("a", mirror), pod("b", withOwner("Node")), pod("c", withOwner("DaemonSet")), pod("d", phase(corev1.PodSucceeded)),
				pod("e", phase(corev1.PodFailed), orphan),
			}),
			room: 9, send: []string{}, blocked: none, stuck: none,
		},
		"a hanging daemon pod does not block": {
			policy: patient, view: view([]*corev1.Pod{pod("a", withOwner("DaemonSet"), deletedAt(0))}), room: 9, send: []string{}, blocked: none,
			stuck: none,
		},
		"a deleted finished pod does not block": {
			policy: patient, view: view([]*corev1.Pod{pod("a", phase(corev1.PodSucceeded), deletedAt(0))}), room: 9, send: []string{},
			blocked: none, stuck: none,
		},
		"an unmanaged pod is evicted": {
			policy: patient, view: view([]*corev1.Pod{pod("a", orphan)}), room: 9, send: []string{"evict a"}, blocked: none, left: 1, stuck: none,
		},
		"an unmanaged pod is waited for": {
			policy: with(func(p *Policy) { p.UnmanagedPods = WaitForUnmanaged }), view: view([]*corev1.Pod{pod("a", orphan), pod("b")}), room: 9,
			send: []string{"evict b"}, blocked: []string{"shop/a: " + Unmanaged.String()}, left: 2, stuck: none,
		},
		"a pod with local data is evicted": {
			policy: patient, view: view([]*corev1.Pod{pod("a", emptyDir)}), room: 9, send: []string{"evict a"}, blocked: none, left: 1, stuck: none,
		},
		"a pod with local data stays": {
			policy: with(func(p *Policy) { p.DeleteEmptyDirData = false }), view: view([]*corev1.Pod{pod("a", emptyDir), pod("b")}), room: 9,
			send: []string{"evict b"}, blocked: []string{"shop/a: " + KeepsEmptyDir.String()}, left: 2, stuck: none,
		},
		"grace periods are capped": {
			policy: with(func(p *Policy) { p.PodGracePeriod = 10 }), view: view([]*corev1.Pod{pod("a"), pod("b", grace(5))}), room: 9,
			send: []string{"evict a in 10s", "evict b"}, blocked: none, left: 2, stuck: none,
		},
		"a grace period is never 0": {
			policy: patient, view: view([]*corev1.Pod{pod("a", grace(0))}), room: 9, send: []string{"evict a in 1s"}, blocked: none, left: 1,
			stuck: none,
		},
		"a budget limits evictions": {
			policy: patient, view: view([]*corev1.Pod{pod("a"), pod("b"), pod("c")}, budget("web", 2)), room: 9,
			send: []string{"evict a", "evict b"}, blocked: []string{"shop/c: " + BudgetEmpty.String() + " [shop/web]"}, left: 3, stuck: none,
		},
		"budgets apply in their namespace": {
			policy: patient, view: view([]*corev1.Pod{pod("a")}, budget("web", 0, ofNamespace("other"))), room: 9, send: []string{"evict a"},
			blocked: none, left: 1, stuck: none,
		},
		"equal names in two namespaces": {
			policy: patient, view: view([]*corev1.Pod{pod("a"), pod("b", in("other"))}, budget("web", 0), budget("web", 1, ofNamespace("other"))),
			room: 9, send: []string{"evict b"}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 2, stuck: none,
		},
		"an empty selector selects the whole namespace": {
			policy: patient, view: view([]*corev1.Pod{pod("a", withLabel("x", "y"))}, budget("all", 0, selects(&metav1.LabelSelector{}))), room: 9,
			send: []string{}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/all]"}, left: 1, stuck: none,
		},
		"no selector selects nothing": {
			policy: patient, view: view([]*corev1.Pod{pod("a")}, budget("none", 0, selects(nil))), room: 9, send: []string{"evict a"},
			blocked: none, left: 1, stuck: none,
		},
		"an invalid selector selects nothing": {
			policy: patient, view: view([]*corev1.Pod{
				pod("a"),
			}, budget("bad", 0, selects(&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}},
			}))), room: 9,
			send: []string{"evict a"}, blocked: none, left: 1, stuck: none,
		},
		"a selector with expressions": {
			policy: patient, view: view([]*corev1.Pod{
				pod("a"), pod("b", withLabel("app", "db")),
			}, budget("b", 0, selects(&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "NotIn", Values: []string{"db"}}},
			}))), room: 9,
			send: []string{"evict b"}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/b]"}, left: 2, stuck: none,
		},
		"two budgets block, and both are named": {
			policy: patient, view: view([]*corev1.Pod{
				pod("a"), pod("b", withLabel("app", "db")),
			}, budget("web", 5), budget("all", 5, selects(&metav1.LabelSelector{}))), room: 9,
			send: []string{"evict b"}, blocked: []string{"shop/a: " + ManyBudgets.String() + " [shop/all shop/web]"}, left: 2, stuck: none,
		},
		"a stale budget allows nothing": {
			policy: patient, view: view([]*corev1.Pod{pod("a")}, budget("web", 5, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })),
			room: 9, send: []string{}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 1, stuck: none,
		},
		"a budget below zero allows nothing": {
			policy: patient, view: view([]*corev1.Pod{pod("a")}, budget("web", -3)), room: 9, send: []string{},
			blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 1, stuck: none,
		},
		"a pending pod needs no budget": {
			policy: patient, view: view([]*corev1.Pod{pod("a", phase(corev1.PodPending), unready)}, budget("web", 0), budget("web2", 0)), room: 9,
			send: []string{"evict a"}, blocked: none, left: 1, stuck: none,
		},
		"an unready pod leaves while enough are ready": {
			policy: patient, view: view([]*corev1.Pod{pod("a", unready), pod("b")}, budget("web", 0)), room: 9, send: []string{
				"evict a",
			}, blocked: []string{"shop/b: " + BudgetEmpty.String() + " [shop/web]"}, left: 2, stuck: none,
		},
		"an unready pod stays while too few are ready": {
			policy: patient, view: view([]*corev1.Pod{pod("a", unready)}, budget("web", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.CurrentHealthy = 8
			})), room: 9,
			send: []string{}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 1, stuck: none,
		},
		"an unready pod leaves if its budget always allows it": {
			policy: patient, view: view([]*corev1.Pod{pod("a", unready)}, budget("web", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 8, &always
			})), room: 9, send: []string{"evict a"}, blocked: none, left: 1, stuck: none,
		},
		"few evictions at a time under one budget": {
			policy: patient,
			view:   view([]*corev1.Pod{pod("a"), pod("b"), pod("c"), pod("d"), pod("e"), pod("f", withLabel("app", "db"))}, budget("web", 9)),
			room:   9, send: []string{"evict a", "evict b", "evict c", "evict d", "evict f"}, blocked: none, left: 6, stuck: none,
		},
		"terminating pods are waited for": {
			policy: patient, view: view([]*corev1.Pod{pod("a", deletedAt(-10*time.Second)), pod("b", deletedAt(59*time.Second))}), room: 9,
			send: []string{}, blocked: none, left: 2, stuck: none,
		},
		"a stuck pod is not waited for": {
			policy: patient, view: view([]*corev1.Pod{pod("a", deletedAt(60*time.Second))}), room: 9, send: []string{}, blocked: none,
			stuck: []string{"shop/a"},
		},
		"no pod is left": {policy: patient, view: view(nil), room: 9, send: []string{}, blocked: none, stuck: none},

		"before the deadline no pod is forced": {
			policy: forced, after: 599 * time.Second, view: view([]*corev1.Pod{pod("a")}, budget("web", 0)), room: 9, send: []string{},
			blocked: []string{
				"shop/a: " + BudgetEmpty.String() + " [shop/web]",
			},
			left: 1, stuck: none,
		},
		"at the deadline what is blocked is deleted, with its grace": {
			policy: forced, after: 600 * time.Second, view: view([]*corev1.Pod{pod("a"), pod("b", grace(0))}, budget("web", 0)), room: 9,
			send: []string{
				"delete a in 30s", "delete b in 1s",
			},
			blocked: none, left: 2, stuck: none,
		},
		"the cap applies to forced deletions": {
			policy: with(func(p *Policy) {
				p.Timeout, p.OnTimeout, p.PodGracePeriod = 600, Force, 5
			}), after: 600 * time.Second, view: view([]*corev1.Pod{pod("a")}, budget("web", 0)), room: 9,
			send: []string{"delete a in 5s"}, blocked: none, left: 1, stuck: none,
		},
		"pods that can be evicted are not forced": {
			policy: forced, after: 600 * time.Second,
			view: view([]*corev1.Pod{pod("a"), pod("b"), pod("c", withLabel("app", "db"))}, budget("web", 1)), room: 9,
			send: []string{"evict a", "delete b in 30s", "evict c"}, blocked: none, left: 3, stuck: none,
		},
		"everything that blocks can be forced": {
			policy: with(func(p *Policy) {
				p.Timeout, p.OnTimeout, p.DeleteEmptyDirData, p.UnmanagedPods = 600, Force, false, WaitForUnmanaged
			}), after: time.Hour,
			view: view([]*corev1.Pod{pod("a", emptyDir), pod("b", orphan), pod("c")}, budget("web", 5), budget("web2", 5)), room: 9,
			send: []string{"delete a in 30s", "delete b in 30s", "delete c in 30s"}, blocked: none, left: 3, stuck: none,
		},
		"a terminating pod is not deleted again": {
			policy: forced, after: 700 * time.Second, view: view([]*corev1.Pod{pod("a", deletedAt(-10*time.Second))}), room: 9, send: []string{},
			blocked: none, left: 1, stuck: none,
		},
		"without a timeout there is no deadline": {
			policy: with(func(p *Policy) { p.OnTimeout = Force }), after: 1000 * time.Hour, view: view([]*corev1.Pod{pod("a")}, budget("web", 0)),
			room: 9, send: []string{}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 1, stuck: none,
		},
		"the policy Wait has no deadline": {
			policy: with(func(p *Policy) { p.Timeout = 600 }), after: time.Hour, view: view([]*corev1.Pod{pod("a")}, budget("web", 0)), room: 9,
			send: []string{}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 1, stuck: none,
		},
		"the policy Continue with nothing left": {
			policy: with(func(p *Policy) { p.Timeout, p.OnTimeout = 600, Continue }), after: 600 * time.Second, view: view(nil), room: 9,
			send: []string{}, blocked: none, stuck: none,
		},
		"the policy Continue leaves the rest": {
			policy: with(func(p *Policy) {
				p.Timeout, p.OnTimeout = 600, Continue
			}), after: 600 * time.Second, view: view([]*corev1.Pod{pod("a"), pod("b", withLabel("app", "db"))}, budget("web", 0)), room: 9,
			send: []string{}, blocked: []string{"shop/a: " + BudgetEmpty.String() + " [shop/web]"}, left: 2, stuck: none, over: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(now, Task{Policy: c.policy, Started: now.Add(-c.after)}, c.view, c.room)
			require.Equal(t, c.send, sentLines(got))
			var blocked, stuck []string
			for _, b := range got.Blocked {
				text := b.Pod + ": " + b.Why.String()
				if b.Budgets != nil {
					text += " " + fmt.Sprint(b.Budgets)
				}
				blocked = append(blocked, text)
			}
			for _, p := range got.Stuck {
				stuck = append(stuck, p.ID())
			}
			require.Equal(t, c.blocked, blocked)
			require.Equal(t, c.stuck, stuck)
			require.Len(t, got.Left, c.left)
			require.Equal(t, c.over, got.TimedOut)
		})
	}
}

// Requests that are not counted yet count against their budget.
func TestDecideCountsRequestsInFlight(t *testing.T) {
	three := []*corev1.Pod{pod("a"), pod("b"), pod("c")}
	for name, c := range map[string]struct {
		tries   map[types.UID]Try
		allowed int32
		policy  Policy
		send    []string
		next    time.Duration // 0: never
	}{
		"in flight": {
			tries: map[types.UID]Try{"uid-a": {InFlight: true, Budget: "shop/web"}}, allowed: 2, policy: patient, send: []string{"evict b"},
		},
		"in flight and counted already": {
			tries: map[types.UID]Try{"uid-a": {
				InFlight: true, Budget: "shop/web", Counted: true,
			}}, allowed: 1, policy: patient, send: []string{"evict b"},
		},
		"of a pod that no longer exists": {
			tries: map[types.UID]Try{"uid-absent": {Accepted: now, Budget: "shop/web"}}, allowed: 1, policy: patient, send: []string{},
			next: settle,
		},
		"accepted just now": {
			tries: map[types.UID]Try{"uid-a": {
				Accepted: now, Budget: "shop/web",
			}}, allowed: 2, policy: patient, send: []string{"evict b"}, next: settle,
		},
		"accepted and counted": {
			tries: map[types.UID]Try{"uid-a": {
				Accepted: now, Budget: "shop/web", Counted: true,
			}}, allowed: 1, policy: patient, send: []string{"evict b"}, next: resend,
		},
		"accepted, and no watch reported it": {
			tries: map[types.UID]Try{"uid-a": {
				Accepted: now.Add(-settle), Budget: "shop/web",
			}}, allowed: 1, policy: patient, send: []string{"evict b"}, next: resend - settle,
		},
		"accepted without effect": {
			tries: map[types.UID]Try{"uid-a": {
				Accepted: now.Add(-resend), Budget: "shop/web",
			}}, allowed: 1, policy: patient, send: []string{"evict a"},
		},
		"refused for now": {
			tries: map[types.UID]Try{"uid-a": {
				NotBefore: now.Add(time.Second), Why: Reason{Code: Conflict},
			}}, allowed: 9, policy: patient, send: []string{"evict b", "evict c"},
			next: time.Second,
		},
		"refused a while ago": {
			tries: map[types.UID]Try{"uid-a": {NotBefore: now, Why: Reason{Code: Conflict}}}, allowed: 1, policy: patient,
			send: []string{"evict a"},
		},
		"refused until the deadline: forced": {
			tries: map[types.UID]Try{
				"uid-a": {NotBefore: now, Why: Reason{Code: Refused}},
			}, allowed: 2, policy: Policy{Timeout: 1, OnTimeout: Force, DeleteEmptyDirData: true},
			send: []string{"delete a in 30s", "evict b", "evict c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := view(three, budget("web", c.allowed))
			v.Tries = c.tries
			got := Decide(now, Task{Policy: c.policy, Started: now.Add(-time.Hour)}, v, 9)
			require.Equal(t, c.send, sentLines(got))
			next := time.Duration(0)
			if !got.Next.IsZero() {
				next = got.Next.Sub(now)
			}
			require.Equal(t, c.next, next)
		})
	}
}

// A budget never gets more requests than its status allows.
func FuzzBudgetsAreNeverExceeded(f *testing.F) {
	f.Add(uint64(0), uint8(3), uint8(9))
	f.Add(uint64(0x123456789), uint8(1), uint8(40))
	f.Fuzz(func(t *testing.T, bits uint64, allowed, many uint8) {
		var pods []*corev1.Pod
		for i := range int(many % 64) {
			pods = append(pods, pod(fmt.Sprintf("p%02d", i)))
		}
		v := view(pods, budget("web", int32(allowed)))
		held := 0
		for i, p := range pods {
			switch bits >> (2 * (i % 32)) & 3 {
			case 1:
				v.Tries[p.UID], held = Try{InFlight: true, Budget: "shop/web"}, held+1
			case 2:
				v.Tries[p.UID], held = Try{Accepted: now, Budget: "shop/web"}, held+1
			case 3:
				v.Tries[p.UID] = Try{NotBefore: now, Why: Reason{Code: Conflict}}
			}
		}
		got := Decide(now, Task{Policy: patient, Started: now}, v, 1000)
		require.LessOrEqual(t, len(got.Send), max(0, int(allowed)-held))
		seen := map[types.UID]bool{}
		for _, r := range got.Send {
			require.Equal(t, Key("shop/web"), r.Budget)
			require.False(t, seen[r.Pod.UID] || v.Tries[r.Pod.UID].InFlight)
			seen[r.Pod.UID] = true
		}
		require.Len(t, got.Left, len(pods))
	})
}

func TestDecideWaitsForLoadBalancers(t *testing.T) {
	policy := patient
	policy.LoadBalancerWait = 60
	v := view([]*corev1.Pod{pod("a")})
	v.Excluded = now.Add(-59 * time.Second)
	got := Decide(now, Task{Policy: policy, Started: now}, v, 9)
	require.Empty(t, got.Send)
	require.Equal(t, now.Add(time.Second), got.Next)
	require.Equal(t, 31*time.Second, got.Estimate)
	var r Report
	Describe(&r, got)
	require.Equal(t, "1 pod is left; load balancers have until "+now.Add(time.Second).UTC().Format(time.TimeOnly)+
		" UTC to stop using the node",
		r.Summary())
	v.Excluded = now.Add(-60 * time.Second)
	require.Len(t, Decide(now, Task{Policy: policy, Started: now}, v, 9).Send, 1)

	policy.LoadBalancerWait, policy.Timeout, policy.OnTimeout = 3600, 600, Force
	got = Decide(now, Task{Policy: policy, Started: now.Add(-600 * time.Second)}, v, 9)
	require.Equal(t, []string{"evict a"}, sentLines(got), "the drain's timeout is earlier")
	require.Zero(t, got.EvictionsFrom)
}

func TestDecideBoundsRequestsInFlight(t *testing.T) {
	for inFlight, want := range map[int][]string{0: {"evict z"}, perBudget - 1: {"evict z"}, perBudget: {}} {
		v := view([]*corev1.Pod{pod("z")}, budget("web", 9))
		for i := range inFlight {
			v.Tries[types.UID(string(rune('a'+i)))] = Try{Budget: "shop/web", InFlight: true}
		}
		require.Equal(t, want, sentLines(Decide(now, Task{Policy: patient, Started: now}, v, 9)), inFlight)
	}
}

func TestDecideOrder(t *testing.T) {
	low := func(p *corev1.Pod) { priority := int32(-1); p.Spec.Priority = &priority }
	first, second := pod("a", in("b")), pod("a", in("b"))
	first.UID, second.UID = "1", "2"
	d := Decide(now, Task{Policy: patient, Started: now}, view([]*corev1.Pod{
		pod("c", important), second, pod("b", in("a")), first, pod("d", low), pod("a", in("c")), pod("e", in("a")),
	}), 9)
	var order []string
	for _, p := range d.Left {
		order = append(order, p.ID()+" "+string(p.UID))
	}
	require.Equal(t, []string{"shop/d uid-d", "a/b uid-b", "a/e uid-e", "b/a 1", "b/a 2", "c/a uid-a", "shop/c uid-c"}, order)
}
