package roll_test

// The plot of a random roll: what a seed determines, and how its acts are performed.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// rolledPool is a pool of a spec.
type rolledPool struct {
	name        string
	least, most int // its sizes
	mark        int // the version of its nodes
	tooNew      bool
	update      api.Update
	// timeout of its drains, and the policy after it.
	timeout   time.Duration
	onTimeout string
}

// rollPlot is the plot of a seed.
type rollPlot struct {
	uploads    []rollUpload
	apps       []apiserver.App
	faultRules []string
	waits      bool // CloudFormation waits for terminate hooks
}

// rollUpload is a spec, and the acts after it.
type rollUpload struct {
	pools []rolledPool
	acts  []rollAct
	// next is the time until the next upload; 0 waits until no work is in flight.
	next time.Duration
}

// rollAct is an event of a pool.
type rollAct struct {
	after time.Duration
	pool  int
	what  string
}

// The acts.
const (
	grows   = "the autoscaler wants a node more"
	shrinks = "the autoscaler takes a node away"
	fails   = "a node fails"
	spot    = "a spot instance is interrupted"
	blocks  = "a budget allows nothing for an hour and a half"
)

func plotRolls(seed uint64) rollPlot {
	r := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- a plot, no secret
	p := rollPlot{waits: r.IntN(2) == 0}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var pools []rolledPool
	for _, name := range []string{"a", "b"}[:1+r.IntN(2)] {
		least := 1 + r.IntN(4)
		pools = append(pools, rolledPool{
			name: name, least: least, most: least + r.IntN(4), timeout: time.Duration(10+r.IntN(30)) * time.Minute,
			onTimeout: pick("Wait", "Wait", "Force", "Continue"),
		})
	}
	for range 2 + r.IntN(2) {
		for i := range pools {
			pool := &pools[i]
			if r.IntN(5) > 0 {
				pool.mark++
			}
			pool.tooNew = r.IntN(6) == 0
			pace := [][2]api.Amount{{"0", "1"}, {"0", "2"}, {"1", "0"}, {"1", "1"}, {"50%", "0"}, {"0", "50%"}, {"2", "0"}}[r.IntN(7)]
			pool.update = api.Update{Strategy: api.RollingUpdate, MaxUnavailable: pace[0], MaxSurge: pace[1]}
			if r.IntN(3) == 0 {
				pool.update.Strategy = api.InstanceRefresh
			}
		}
		upload := rollUpload{pools: slices.Clone(pools)}
		if r.IntN(3) == 0 {
			upload.next = time.Duration(30+r.IntN(600)) * time.Second
		}
		for range r.IntN(5) {
			what := pick(grows, grows, grows, shrinks, shrinks, fails, spot, blocks)
			upload.acts = append(upload.acts, rollAct{time.Duration(20+r.IntN(400)) * time.Second, r.IntN(len(pools)), what})
		}
		slices.SortStableFunc(upload.acts, func(a, b rollAct) int { return int(a.after - b.after) })
		p.uploads = append(p.uploads, upload)
	}
	for i := range 1 + r.IntN(3) {
		app := apiserver.App{
			Name: fmt.Sprintf("app%d", i), Replicas: 2 + r.IntN(8), MaxUnavailable: 1 + r.IntN(2), Start: time.Duration(r.IntN(40)) * time.Second,
			Grace: 30 * time.Second, Stop: time.Duration(r.IntN(20)) * time.Second,
		}
		p.apps = append(p.apps, app)
	}
	for _, rule := range []string{
		fmt.Sprintf("drop p=%.2f", max(0.01, r.Float64()/3)), fmt.Sprintf("duplicate p=%.2f", max(0.01, r.Float64()/2)),
		fmt.Sprintf("reorder=%ds p=%.2f", 1+r.IntN(200), max(0.01, r.Float64()/2)),
		fmt.Sprintf("kill machine=join-node p=%.2f count=%d", r.Float64()/6+0.02, 1+r.IntN(3)),
		fmt.Sprintf("kill machine=drain-node p=%.2f count=%d", r.Float64()/6+0.02, 1+r.IntN(3)),
	} {
		if r.IntN(3) == 0 {
			p.faultRules = append(p.faultRules, rule)
		}
	}
	return p
}

func (u rollUpload) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: r1}
  network: {cidr: 10.0.0.0/16, zones: [%[1]sa, %[1]sb], natGateways: Single}
  pools:
`, harness.Region)
	for _, p := range u.pools {
		image := ""
		if p.tooNew {
			image = "imageID: " + ec2.TooNewImage + ", "
		}
		unavailable, _ := p.update.MaxUnavailable.MarshalJSON()
		surge, _ := p.update.MaxSurge.MarshalJSON()
		fmt.Fprintf(&b, "    - {name: %s, instanceTypes: [m7i.large], minSize: %d, maxSize: %d, %sdrain: {timeout: %s, onTimeout: %s}, update: "+
			"{strategy: %s, maxUnavailable: %s, maxSurge: %s}, files: [{path: /etc/motd, content: \"%d\"}]}\n",
			p.name, p.least, p.most, image, p.timeout, p.onTimeout, p.update.Strategy, unavailable, surge, p.mark)
	}
	return b.String()
}

// do performs an act.
func (l *rolls) do(act rollAct, pools []rolledPool) {
	pool := pools[act.pool%len(pools)]
	group := names.Group("demo", pool.name)
	l.mu.Lock()
	j := l.judges[group]
	view := j.view
	var old, serving []string // instances in service; old are those from before the update, as the autoscaler sees them
	for _, i := range view.Instances {
		if i.State == "InService" && !l.lost[i.ID] {
			serving = append(serving, i.ID)
			if i.TemplateVersion == view.Instances[0].TemplateVersion {
				old = append(old, i.ID)
			}
		}
	}
	l.mu.Unlock()
	scaling := autoscalingapi.NewFromConfig(l.Config())
	excuse := func(text string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.excused = append(l.excused, text)
	}
	switch act.what {
	case grows:
		// The cluster autoscaler raises the desired size by one.
		_, err := scaling.SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: &group, DesiredCapacity: aws.Int32(int32(view.Desired + 1)),
		})
		if err == nil {
			l.mu.Lock()
			j.grown++
			l.mu.Unlock()
		}
	case shrinks:
		if len(old) < 2 {
			return
		}
		l.mu.Lock()
		j.taken[old[0]] = true
		j.grown--
		j.floor--
		l.mu.Unlock()
		_, err := scaling.TerminateInstanceInAutoScalingGroup(l.T.Context(), &autoscalingapi.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: &old[0], ShouldDecrementDesiredCapacity: aws.Bool(true),
		})
		if err != nil { // the minimum size forbids it
			l.mu.Lock()
			delete(j.taken, old[0])
			j.grown++
			j.floor++
			l.mu.Unlock()
			return
		}
		excuse(act.what) // CloudFormation waits for its replacement
		l.mu.Lock()
		if j.pool.update.Strategy == api.InstanceRefresh {
			j.lost++ // a refresh that has room for a batch takes it, even if the room shrinks
		}
		l.mu.Unlock()
	case fails, spot:
		if len(serving) == 0 {
			return
		}
		id := serving[len(serving)/2]
		if act.what == spot {
			l.mu.Lock()
			l.drains[id] = time.Now()
			l.mu.Unlock()
			l.Events.Emit(l.T.Context(), "aws.ec2", "EC2 Spot Instance Interruption Warning", []string{
				"arn:aws:ec2:" + harness.Region + "a:instance/" + id,
			}, map[string]any{"instance-id": id, "instance-action": "terminate"})
			time.Sleep(2 * time.Minute)
		}
		l.mu.Lock()
		l.lost[id] = true
		j.lost++
		l.mu.Unlock()
		excuse(act.what)
		_ = l.EC2.Terminate(id, "Server.InternalError") // unless it has terminated
	case blocks:
		if time.Now().Before(l.blocked) {
			return
		}
		l.blocked = time.Now().Add(90 * time.Minute)
		app := l.plot.apps[0]
		app.MaxUnavailable = 0
		l.API("drover-demo").Run(app)
		time.AfterFunc(90*time.Minute, func() { l.API("drover-demo").Run(l.plot.apps[0]) })
	}
}
