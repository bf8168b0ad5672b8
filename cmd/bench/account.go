package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

const (
	// speed of simulated work, the same as of drover local.
	speed = 60
	// patience bounds each wait in the account.
	patience = 5 * time.Minute
	// pause between two polls.
	pause = 50 * time.Millisecond
)

// localAccount is a local account with drover that collects Lambda's reports.
type localAccount struct {
	*account.Account
	dir string

	mu      sync.Mutex
	reports []lambda.Report

	specs *s3.Bucket
	state *store.State
	// demo reports whether the demo cluster exists.
	demo bool
}

// open starts the account once for all sections. A process can run only one S3 gateway at a time.
func (s *settings) open(ctx context.Context) (*localAccount, error) {
	if s.account != nil {
		return s.account, nil
	}
	return s.openAt(ctx, speed)
}

// openAt replaces the account by one with another speed of simulated work.
func (s *settings) openAt(ctx context.Context, speed float64) (*localAccount, error) {
	s.account.Close()
	s.account = nil
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return nil, err
	}
	a, err := account.Start(account.Options{Dir: dir, KubernetesBin: kubernetes.BinDir(s.root), Speed: speed})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	m := &localAccount{Account: a, dir: dir}
	s.account = m
	a.Lambda.Observe = func(report lambda.Report) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reports = append(m.reports, report)
	}
	client := s3.NewClient(a.Config())
	m.specs = s3.NewBucket(client, names.SpecsBucket(account.ID, a.Region()))
	m.state = store.NewState(s3.NewBucket(client, names.StateBucket(account.ID, a.Region())), store.Silent, time.Now)
	return m, a.Deploy(ctx, filepath.Join(s.build, "cdk.out"))
}

// Close stops the account, if one runs.
func (m *localAccount) Close() {
	if m != nil {
		m.Account.Close()
		_ = os.RemoveAll(m.dir)
	}
}

// mark is a position in the lists of invocations and calls.
type mark struct{ reports, calls int }

func (m *localAccount) mark() mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return mark{len(m.reports), m.Calls.Mark()}
}

// invocations since a mark.
func (m *localAccount) invocations(since mark) []lambda.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reports[since.reports:])
}

// call is a call by one of drover's functions.
type call struct {
	endpoint.Call
	function string
}

// calls by drover's functions since a mark. The name of a role ends with its function; CloudFormation's role has none.
func (m *localAccount) calls(since mark) []call {
	var all []call
	for _, c := range m.Calls.Since(since.calls) {
		_, role, ok := strings.Cut(c.Caller, ":assumed-role/"+names.Role(m.Region(), ""))
		if function, _, _ := strings.Cut(role, "/"); ok && function != "cloudformation" {
			all = append(all, call{c, function})
		}
	}
	return all
}

// transitions of all executions that started since a time, by machine.
func (m *localAccount) transitions(since time.Time) map[string]int {
	by := map[string]int{}
	for _, x := range m.StepFunctions.Executions() {
		if !x.Started.Before(since) {
			by[strings.TrimPrefix(x.MachineName, names.Prefix)] += x.Transitions
		}
	}
	return by
}

// demo cluster and its release.
const (
	demo        = "demo"
	demoSpec    = "examples/clusters/demo.yaml"
	demoRelease = "examples/releases/1.36-1.yaml"
)

// createDemo uploads the demo's release and spec. It waits until the cluster is Ready and the account is idle.
func (m *localAccount) createDemo(ctx context.Context, s *settings) error {
	spec, err := os.ReadFile(filepath.Join(s.root, demoSpec))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.putRelease(ctx, s); err != nil {
		return err
	}
	if err := m.converge(ctx, demo, spec); err != nil {
		return err
	}
	m.demo = true
	return m.quiet(ctx)
}

// putRelease uploads the demo's release.
func (m *localAccount) putRelease(ctx context.Context, s *settings) error {
	release, err := os.ReadFile(filepath.Join(s.root, demoRelease))
	if err != nil {
		return err
	}
	_, err = m.specs.Put(ctx, names.ReleaseSpec(strings.TrimSuffix(filepath.Base(demoRelease), ".yaml")), release)
	return err
}

// converge uploads the spec of a cluster and waits until the cluster is Ready with it.
func (m *localAccount) converge(ctx context.Context, name string, spec []byte) error {
	if _, err := m.specs.Put(ctx, names.ClusterSpec(name), spec); err != nil {
		return err
	}
	uploaded, err := m.specs.Get(ctx, names.ClusterSpec(name), api.MaxFile)
	if err != nil {
		return err
	}
	for {
		cluster, err := m.state.Status(ctx, name)
		if err == nil && cluster.Status.PlannedVersion == uploaded.Version {
			switch s := cluster.Status; s.Phase {
			case status.Failed, status.Stopped:
				return fmt.Errorf("%s is %s: %s", name, s.Phase, s.Message)
			case status.Ready:
				return nil
			}
		}
		if err := m.wait(ctx); err != nil {
			return err
		}
	}
}

// quiet waits until nothing ran or called for a second, because an event may be in flight.
func (m *localAccount) quiet(ctx context.Context) error {
	for before, same := m.mark(), 0; same < int(time.Second/pause); {
		if err := m.Settle(ctx); err != nil {
			return err
		}
		if err := m.wait(ctx); err != nil {
			return err
		}
		if now := m.mark(); now == before {
			same++
		} else {
			before, same = now, 0
		}
	}
	return nil
}

func (m *localAccount) wait(ctx context.Context) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the local account: %w", ctx.Err())
	}
}
