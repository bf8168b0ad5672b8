// Package handler resumes the step that waits for a stack when CloudFormation says that the stack is at rest.
package handler

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// State knows who waits: a subset of store.State.
type State interface {
	Waiter(ctx context.Context, stackName string) (store.Waiter, error)
}

// Resumer tells a step how its stack ended: resume.Resumer.
type Resumer interface {
	Resume(ctx context.Context, w store.Waiter, stackStatus string) error
}

// Handler takes stack events.
type Handler struct {
	State  State
	Resume Resumer
}

// Handle takes one event. One that nobody waits for, that belongs to another operation, or that says nothing final, is
// past or not yet of interest.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.StackStatus]) (struct{}, error) {
	var done struct{}
	status, stackName := in.Detail.StatusDetails.Status, names.StackOfARN(in.Detail.StackID)
	log := boundary.Log(ctx).With("stack", stackName, "status", status, "event", in.ID)
	w, err := h.State.Waiter(ctx, stackName)
	if errors.Is(err, store.ErrNotFound) {
		log.Info("nobody waits for this stack")
		return done, nil
	}
	if err != nil {
		return done, err
	}
	if w.ClientRequestToken != "" && w.ClientRequestToken != in.Detail.ClientRequestToken {
		log.Info("the event belongs to another operation", "token", in.Detail.ClientRequestToken, "awaited", w.ClientRequestToken)
		return done, nil
	}
	log.Info("resuming the waiting step", "cluster", w.Cluster)
	return done, h.Resume.Resume(ctx, w, status)
}
