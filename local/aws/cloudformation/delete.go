package cloudformation

import (
	"context"
	"slices"

	"github.com/drover-run/drover/local/engine/resource"
)

// Deletion of physical resources: in a stack's deletion, a rolled back creation, and cleanup.

// leftover is a physical resource to delete or to retain.
type leftover struct {
	*stackResource
	retain bool
}

// deleteResources deletes physical resources, dependents first. It returns the logical IDs of those that could not be deleted.
func (o *operation) deleteResources(ctx context.Context, all []*leftover) []string {
	graph := make(map[*leftover][]*leftover, len(all))
	for _, item := range all {
		for _, on := range item.dependsOn {
			for _, other := range all {
				if other.logicalID == on && other != item {
					graph[item] = append(graph[item], other)
				}
			}
		}
		if graph[item] == nil {
			graph[item] = nil
		}
	}
	failures := walk(ctx, reverse(graph), false, o.deleteResource)
	var failed []string
	for item := range failures {
		failed = append(failed, item.logicalID)
	}
	slices.Sort(failed)
	return slices.Compact(failed)
}

func (o *operation) deleteResource(ctx context.Context, item *leftover) error {
	s, st := o.service, o.stack
	r := item.stackResource
	s.config.Clock.Take("cloudformation: " + r.logicalID + " of " + st.name)
	s.mu.Lock()
	provider := s.provider(r.resourceType)
	switch {
	case r.physicalID == "":
		s.setResource(st, r, deleteComplete, "", o.token)
		s.mu.Unlock()
		return nil
	case item.retain:
		s.setResource(st, r, deleteSkipped, "", o.token)
		s.mu.Unlock()
		return nil
	}
	s.setResource(st, r, deleteInProgress, "", o.token)
	s.mu.Unlock()
	request := o.request(r, targetResource{properties: r.properties, tags: r.tags, definition: r.definition}, nil)
	request.PhysicalID = r.physicalID
	_, err := o.call(ctx, func(ctx context.Context, request resource.Request) (resource.Result, error) {
		return resource.Result{}, provider.Delete(ctx, request)
	}, request)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.setResource(st, r, deleteComplete, "", o.token)
	case o.force && ctx.Err() == nil:
		s.setResource(st, r, deleteSkipped, s.handlerMessage(st, r, err), o.token)
		err = nil
	default:
		s.setResource(st, r, deleteFailed, s.handlerMessage(st, r, err), o.token)
	}
	return err
}
