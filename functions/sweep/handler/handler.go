// Package handler runs the passes of the sweep function: those of package sweep every five minutes, and those of
// package audit every 15. If one pass fails, the others still run.
package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/audit"
	"github.com/drover-run/drover/functions/sweep/sweep"
	"github.com/drover-run/drover/shared/pool"
)

// Handler sweeps and audits.
type Handler struct {
	*audit.Deps

	specs    *sweep.MissedSpecs
	upgrades *sweep.Upgrades
	channels *sweep.Channels
	releases *audit.Releases
	unread   *audit.Unread
}

// New returns a handler whose passes use deps.
func New(deps *audit.Deps) *Handler {
	return &Handler{
		Deps:  deps,
		specs: &sweep.MissedSpecs{Deps: deps.Deps}, upgrades: &sweep.Upgrades{Deps: deps.Deps}, channels: &sweep.Channels{Deps: deps.Deps},
		releases: &audit.Releases{Deps: deps}, unread: &audit.Unread{Deps: deps},
	}
}

// pass is one pass, by name.
type pass struct {
	name string
	run  func(ctx context.Context) error
}

// Handle sweeps or audits once. It returns the errors of all passes.
func (h *Handler) Handle(ctx context.Context, in events.Sweep) (struct{}, error) {
	passes := h.sweep()
	if in.Audit {
		passes = h.audit()
	}
	var failed []error
	for _, p := range passes {
		if err := p.run(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return struct{}{}, errors.Join(failed...)
}

// audit checks releases and channels first. Planning reads the releases as they were listed, and the sweep starts the
// clusters whose channel moved.
func (h *Handler) audit() []pass {
	return []pass{
		{"releases", h.releases.Run},
		{"channels", h.channels.Run},
		{"audit", audit.Audit{Deps: h.Deps}.Run},
		{"unread uploads", h.unread.Run},
	}
}

// sweep handles instances at hooks first: their time is limited, and after it a node is terminated with its pods. If the function is
// interrupted, the later passes wait for the next sweep.
func (h *Handler) sweep() []pass {
	deps := h.Deps.Deps
	var groups []pool.Group
	var changing map[string]bool
	return []pass{
		{"groups", func(ctx context.Context) (err error) { groups, err = deps.Groups.All(ctx); return err }},
		{"hooks", func(ctx context.Context) error { return sweep.Hooks{Deps: deps}.Run(ctx, groups) }},
		{"waiters", func(ctx context.Context) (err error) { changing, err = sweep.Waiters{Deps: deps}.Run(ctx); return err }},
		{"missed specs", h.specs.Run},
		{"ended executions", sweep.EndedExecutions{Deps: deps}.Run},
		{"upgrades", h.upgrades.Run},
		{"instances", func(ctx context.Context) error { return sweep.Instances{Deps: deps}.Run(ctx, groups, changing) }},
		{"channels", h.channels.Run},
		{"due work", sweep.Due{Deps: deps, Auditor: audit.Audit{Deps: h.Deps}}.Run},
	}
}
