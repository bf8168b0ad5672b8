package steps

import (
	"context"
	"time"

	"github.com/drover-run/drover/shared/kube"
)

// observer counts the available pods of the workload during a change.
type observer struct {
	stop context.CancelFunc
	done chan struct{}
	// least is the lowest count, count the number of observations, lost those without an answer.
	least       int64
	count, lost int
}

const (
	// observationInterval is the pause between two observations.
	observationInterval = 500 * time.Millisecond
	// tokenLife is how long a connection is used. A token of EKS is valid for 15 minutes.
	tokenLife = 10 * time.Minute
)

// observe begins to count.
func (t *Target) observe(ctx context.Context, cluster string) *observer {
	ctx, stop := context.WithCancel(ctx)
	o := &observer{stop: stop, done: make(chan struct{}), least: 2}
	go func() {
		defer close(o.done)
		var api *kube.Cluster
		var opened time.Time
		for ctx.Err() == nil {
			var err error
			if time.Since(opened) > tokenLife {
				if api, err = t.open(ctx, cluster); err == nil {
					opened = time.Now()
				}
			}
			if err == nil {
				var available int64
				if available, err = availablePods(ctx, api); err == nil {
					o.count, o.least = o.count+1, min(o.least, available)
				}
			}
			if err != nil && ctx.Err() == nil {
				o.lost++
			}
			select {
			case <-ctx.Done():
			case <-time.After(observationInterval):
			}
		}
	}()
	return o
}

// end stops the observation and returns what it counted.
func (o *observer) end() (least int64, count, lost int) {
	o.stop()
	<-o.done
	return o.least, o.count, o.lost
}
