package live

// The progress of a stack's operation and of the replacement of a pool's nodes.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

// Progress counts the nodes of a pool.
type Progress struct {
	Desired, InService, Joining, Draining int
	// Ready counts the nodes that are Ready in Kubernetes. It is -1 if the cluster was not read.
	Ready int
	// Replaced counts the instances in service with the target template. Outdated counts the instances with another template.
	Replaced, Outdated int
}

// ProgressOf returns the progress of a pool. rollsBack reports whether its stack rolls back.
func ProgressOf(g pool.Group, nodes []pool.NodeHealth, nodesRead, rollsBack bool) Progress {
	p := Progress{
		Desired: g.Desired, InService: g.Serving(), Joining: len(g.Launching()), Draining: len(g.AllTerminating()), Ready: -1,
	}
	target := targetTemplate(g, rollsBack)
	for _, i := range g.Instances {
		switch {
		case i.TemplateVersion != target:
			p.Outdated++
		case i.State == pool.InService:
			p.Replaced++
		}
	}
	if nodesRead {
		p.Ready = 0
		for _, n := range nodes {
			if n.Ready && g.IsInService(n.Instance) {
				p.Ready++
			}
		}
	}
	return p
}

// targetTemplate returns the version of the launch template that the pool changes to. An instance refresh sets the version of
// the group only at its end, so the newest version of an instance applies until then.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/understand-instance-refresh-default-values.html
func targetTemplate(g pool.Group, rollsBack bool) string {
	target := g.TemplateVersion
	if rollsBack {
		return target
	}
	for _, i := range g.Instances {
		if number(i.TemplateVersion) > number(target) {
			target = i.TemplateVersion
		}
	}
	return target
}

// number returns a version as a number, or 0 if the version is not a number.
func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// Words describes the progress: "2 of 4 nodes replaced, 1 joining, 1 draining". changing is true during an operation of the
// pool's stack.
func (p Progress) Words(changing bool) string {
	var parts []string
	switch {
	case p.Outdated > 0 && (changing || p.Draining > 0):
		parts = append(parts, strconv.Itoa(min(p.Replaced, p.Desired))+" of "+view.Count(p.Desired, "node")+" replaced")
	case p.Outdated > 0:
		parts = append(parts, view.Count(p.Outdated, "node")+" with an older template")
	}
	if p.Joining > 0 {
		parts = append(parts, strconv.Itoa(p.Joining)+" joining")
	}
	if p.Draining > 0 {
		parts = append(parts, strconv.Itoa(p.Draining)+" draining")
	}
	if missing := p.Desired - p.InService - p.Joining; missing > 0 {
		parts = append(parts, strconv.Itoa(missing)+" missing")
	}
	if p.Ready >= 0 && p.Ready < p.InService {
		parts = append(parts, strconv.Itoa(p.InService-p.Ready)+" not Ready")
	}
	return strings.Join(parts, ", ")
}

// OperationWords describes the progress of a stack's operation: "3 resources done, ControlPlane in progress".
func OperationWords(stackStatus string, o cloudformation.Operation) string {
	if !stack.InProgress(stackStatus) {
		return ""
	}
	const named = 3
	words := view.Count(o.Done, "resource") + " done"
	if n := len(o.InProgress); n > 0 {
		list := slices.Clone(o.InProgress[:min(n, named)])
		if n > named {
			list = append(list, strconv.Itoa(n-named)+" more")
		}
		words += ", " + strings.Join(list, ", ") + " in progress"
	}
	return words
}
