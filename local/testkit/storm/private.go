package storm

// Private clusters. Their endpoints admit only relays, which Lambda throttles, delays or fails.

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// randomRelayFaults write rules about the relay of a cluster. Throttles for an hour outlast the retries of every machine.
var randomRelayFaults = []func(r *rand.Rand, cluster string) string{
	func(r *rand.Rand, cluster string) string {
		return fmt.Sprintf("throttle service=lambda cluster=%s p=%.2f", cluster, 0.05+r.Float64()/2)
	},
	func(r *rand.Rand, cluster string) string {
		return fmt.Sprintf("throttle service=lambda cluster=%s after=%dm for=60m", cluster, 1+r.IntN(120))
	},
	func(r *rand.Rand, cluster string) string {
		return fmt.Sprintf("latency=%dms service=lambda cluster=%s p=%.2f", 50+r.IntN(20_000), cluster, 0.05+r.Float64()/2)
	},
	func(r *rand.Rand, cluster string) string { // longer than any caller waits
		return fmt.Sprintf("latency=%ds service=lambda cluster=%s after=%dm for=30m", 30+r.IntN(60), cluster, 1+r.IntN(120))
	},
	func(r *rand.Rand, cluster string) string {
		code := pick(r, "ServiceException", "EC2ThrottledException", "ENILimitReachedException")
		return fmt.Sprintf("error=%s status=502 service=lambda cluster=%s p=%.2f", code, cluster, 0.02+r.Float64()/4)
	},
}

// makePrivate makes at least one cluster of a plot private from the beginning or from one of its specs on, and some public again.
func makePrivate(seed uint64, p *plot) {
	r := rand.New(rand.NewPCG(seed, 3)) // #nosec G404 -- a world, no secret
	clusters := slices.Sorted(maps.Keys(p.last))
	always := r.IntN(len(clusters))
	for i, cluster := range clusters {
		if i != always && r.IntN(2) == 0 {
			continue
		}
		private := r.IntN(3) > 0
		for j := range p.acts {
			a := &p.acts[j]
			if a.cluster != cluster || a.spec == nil {
				continue
			}
			a.spec.private = private
			if r.IntN(4) == 0 {
				private = !private
			}
			if last := p.last[cluster]; last != nil {
				last.private = a.spec.private
			}
		}
		for range r.IntN(2) {
			at := time.Duration(15+r.IntN(120)) * time.Minute
			p.acts = append(p.acts, act{
				at: at, cluster: cluster, what: "delete the relay outside drover", do: func(w *world) { w.deleteRelay(cluster) },
			})
		}
		if r.IntN(3) == 0 {
			at := time.Duration(15+r.IntN(120)) * time.Minute
			p.acts = append(p.acts, act{
				at: at, cluster: cluster, what: "give the relay code that drover does not understand",
				do: func(w *world) { w.SetRelay(cluster, strangeRelay) },
			}, act{
				at: at + time.Duration(1+r.IntN(90))*time.Minute, cluster: cluster, what: "give the relay its own code again",
				do: func(w *world) { w.SetRelay(cluster, nil) },
			})
		}
		for range r.IntN(3) {
			p.faultRules = append(p.faultRules, randomRelayFaults[r.IntN(len(randomRelayFaults))](r, cluster))
		}
	}
	p.sortActs()
}

// strangeRelay answers like a relay of an incompatible version.
func strangeRelay(context.Context, http.RoundTripper, []byte) (io.Reader, error) {
	return strings.NewReader(`{"version": 2}` + "\n"), nil
}

// deleteRelay deletes the function of a cluster's relay. CloudFormation does not notice that.
func (w *world) deleteRelay(cluster string) {
	name := names.Relay(cluster)
	_, err := lambda.NewFromConfig(w.Config()).DeleteFunction(w.t.Context(), &lambda.DeleteFunctionInput{FunctionName: &name})
	if err != nil {
		w.record("%s is not deleted: %v", name, fault.Code(err))
		return
	}
	w.affectedStacks(cluster)[names.ControlPlane] = true
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.deletedRelays[cluster] = true
	w.observed.operatorChangeEnded[names.Stack(cluster, names.ControlPlane)] = time.Now()
}

// dropsRelay reports whether a resource belongs to a relay that drover may delete: the function was deleted outside drover, or a spec needs
// no relay.
func (w *world) dropsRelay(cluster, logicalID string) bool {
	w.observed.Lock()
	deleted := w.observed.deletedRelays[cluster]
	w.observed.Unlock()
	open := func(u upload) bool { return u.wish == nil || !u.wish.private }
	return deleted && logicalID == names.RelayResource ||
		strings.HasPrefix(logicalID, "Relay") && slices.ContainsFunc(w.uploads[cluster], open)
}
