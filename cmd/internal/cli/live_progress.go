package cli

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

// poolProgress counts the nodes of a pool.
type poolProgress struct {
	desired, inService, joining, draining int
	// ready counts the nodes that are Ready in Kubernetes. It is -1 if the cluster was not read.
	ready int
	// replaced counts the instances in service with the target template. outdated counts the instances with another template.
	replaced, outdated int
}

// progressOf returns the progress of a pool. rollsBack reports whether its stack rolls back.
func progressOf(g pool.Group, nodes []pool.NodeHealth, nodesRead, rollsBack bool) poolProgress {
	p := poolProgress{
		desired: g.Desired, inService: g.Serving(), joining: len(g.Launching()), draining: len(g.AllTerminating()), ready: -1,
	}
	target := targetTemplate(g, rollsBack)
	for _, i := range g.Instances {
		switch {
		case i.TemplateVersion != target:
			p.outdated++
		case i.State == pool.InService:
			p.replaced++
		}
	}
	if nodesRead {
		p.ready = 0
		for _, n := range nodes {
			if n.Ready && g.IsInService(n.Instance) {
				p.ready++
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

// words describes the progress: "2 of 4 nodes replaced, 1 joining, 1 draining". changing is true during an operation of the
// pool's stack.
func (p poolProgress) words(changing bool) string {
	var parts []string
	switch {
	case p.outdated > 0 && (changing || p.draining > 0):
		parts = append(parts, strconv.Itoa(min(p.replaced, p.desired))+" of "+view.Count(p.desired, "node")+" replaced")
	case p.outdated > 0:
		parts = append(parts, view.Count(p.outdated, "node")+" with an older template")
	}
	if p.joining > 0 {
		parts = append(parts, strconv.Itoa(p.joining)+" joining")
	}
	if p.draining > 0 {
		parts = append(parts, strconv.Itoa(p.draining)+" draining")
	}
	if missing := p.desired - p.inService - p.joining; missing > 0 {
		parts = append(parts, strconv.Itoa(missing)+" missing")
	}
	if p.ready >= 0 && p.ready < p.inService {
		parts = append(parts, strconv.Itoa(p.inService-p.ready)+" not Ready")
	}
	return strings.Join(parts, ", ")
}

// operationWords describes the progress of a stack's operation: "3 resources done, ControlPlane in progress".
func operationWords(stackStatus string, o cloudformation.Operation) string {
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
