package eks

// Add-ons of clusters. An add-on is ACTIVE when its workloads are available.
// https://docs.aws.amazon.com/eks/latest/userguide/eks-add-ons.html

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/questions"
)

// Statuses that only add-ons have.
const (
	createFailed       = "CREATE_FAILED"
	updateFailedStatus = "UPDATE_FAILED"
	degraded           = "DEGRADED"
)

// Time limits for an add-on's pods, in real time. The programs of the cluster are real and need CPU time, however fast simulated time
// passes. EKS itself waits a quarter of an hour, in which a slow machine does not matter. Both limits restart with each pod that becomes
// available.
const (
	addonPoll = 200 * time.Millisecond
	// addonGrace applies when the scheduler reported that no node accepts a pod.
	addonGrace = 10 * time.Second
	// resyncAfter is the time without a newly available pod after which KWOK is notified of pods that it should have started.
	resyncAfter = 5 * time.Second
	// addonPatience applies when the cluster reports no reason for the delay: the control plane may be waiting for CPU time.
	addonPatience = 2 * time.Minute
)

// Addon as the API describes it.
type Addon struct {
	AddonName               string            `json:"addonName"`
	ClusterName             string            `json:"clusterName"`
	Status                  string            `json:"status"`
	AddonVersion            string            `json:"addonVersion"`
	Health                  Health            `json:"health"`
	AddonARN                string            `json:"addonArn"`
	CreatedAt               time.Time         `json:"createdAt"`
	ModifiedAt              time.Time         `json:"modifiedAt"`
	ServiceAccountRoleArn   string            `json:"serviceAccountRoleArn,omitempty"`
	Tags                    map[string]string `json:"tags"`
	Publisher               string            `json:"publisher"`
	Owner                   string            `json:"owner"`
	ConfigurationValues     string            `json:"configurationValues,omitempty"`
	PodIdentityAssociations []string          `json:"podIdentityAssociations,omitempty"`
}

type addon struct {
	Addon
	entry catalogAddon
	// run changes with the desired state of the add-on, and ends the watch of the previous one.
	run int
}

// AddonOutput of the operations that return an add-on.
type AddonOutput struct {
	Addon *Addon `json:"addon"`
}

func (a *addon) output() *AddonOutput {
	d := a.Addon
	d.Tags, d.Health.Issues = cloneTags(a.Tags), append([]Issue{}, a.Health.Issues...)
	d.PodIdentityAssociations = slices.Clone(a.PodIdentityAssociations)
	return &AddonOutput{&d}
}

// AddonPodIdentity is a pod identity association that an add-on owns.
type AddonPodIdentity struct{ ServiceAccount, RoleArn string }

// CreateAddonInput of the API.
type CreateAddonInput struct {
	ClusterName, AddonName, AddonVersion, ServiceAccountRoleArn, ResolveConflicts, ClientRequestToken, ConfigurationValues string
	Tags                                                                                                                   map[string]string
	PodIdentityAssociations                                                                                                []AddonPodIdentity
}

var conflictModes = []string{"", "NONE", "OVERWRITE", "PRESERVE"}

// checkAddon checks the parameters that creation and update share.
func checkAddon(resolve, configuration string) error {
	if !slices.Contains(conflictModes, resolve) {
		return invalid("Invalid resolveConflicts %q: must be NONE, OVERWRITE or PRESERVE", resolve)
	}
	if configuration != "" {
		var values map[string]any
		if err := json.Unmarshal([]byte(configuration), &values); err != nil {
			return invalid("ConfigurationValue is not in valid JSON or YAML format: %v (the local account takes JSON)", err)
		}
	}
	return nil
}

// authorizeAddon checks the permissions for an add-on's roles.
func (s *Service) authorizeAddon(caller iam.Caller, cluster, serviceAccountRole string, identities []AddonPodIdentity) error {
	if serviceAccountRole != "" {
		if err := caller.PassRole(serviceAccountRole, "eks.amazonaws.com"); err != nil {
			return err
		}
	}
	for _, p := range identities {
		if err := s.authorizePodIdentity(caller, CreatePodIdentityAssociationInput{ClusterName: cluster, RoleArn: p.RoleArn}); err != nil {
			return err
		}
	}
	return nil
}

// authorizeIdentities checks an action on an add-on for its pod identity associations: those that it has, by ARN, and those that it gets.
// The service authorization reference lists the resource type podidentityassociation for these actions: questions.AddonIdentities.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (s *Service) authorizeIdentities(caller iam.Caller, action, cluster string, has []string, gets []AddonPodIdentity) error {
	if s.config.Readings.Other(questions.AddonIdentities) {
		return nil
	}
	if len(gets) > 0 {
		has = append(slices.Clone(has), s.arn("podidentityassociation/"+cluster+"/*"))
	}
	for _, arn := range has {
		if err := caller.Authorize("eks:"+action, arn, nil); err != nil {
			return err
		}
	}
	return nil
}

// CreateAddon starts installing an add-on. https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAddon.html
func (s *Service) CreateAddon(_ context.Context, caller iam.Caller, in CreateAddonInput) (*AddonOutput, error) {
	if err := caller.Authorize("eks:CreateAddon", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	arn := s.arn(fmt.Sprintf("addon/%s/%s/%s", in.ClusterName, in.AddonName, uuid()))
	if len(in.Tags) > 0 {
		if err := caller.Authorize("eks:TagResource", arn, nil); err != nil {
			return nil, err
		}
	}
	if err := s.authorizeAddon(caller, in.ClusterName, in.ServiceAccountRoleArn, in.PodIdentityAssociations); err != nil {
		return nil, err
	}
	if err := s.authorizeIdentities(caller, "CreateAddon", in.ClusterName, nil, in.PodIdentityAssociations); err != nil {
		return nil, err
	}
	entry, err := findCatalogAddon(in.AddonName)
	if err != nil {
		return nil, err
	}
	if err := checkAddon(in.ResolveConflicts, in.ConfigurationValues); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findActive(in.ClusterName)
	if err != nil {
		return nil, err
	}
	if _, ok := c.addons[in.AddonName]; ok {
		return nil, inUse("Addon already exists.")
	}
	if in.AddonVersion == "" {
		in.AddonVersion = entry.newestFor(c.Version)
	}
	if err := entry.check(in.AddonVersion, c.Version); err != nil {
		return nil, err
	}
	now := s.config.Clock.Now()
	a := &addon{Addon: Addon{
		AddonName: in.AddonName, ClusterName: c.Name, Status: creating, AddonVersion: in.AddonVersion, Health: Health{Issues: []Issue{}},
		AddonARN:  arn,
		CreatedAt: now, ModifiedAt: now, ServiceAccountRoleArn: in.ServiceAccountRoleArn, Tags: cloneTags(in.Tags), Publisher: "eks",
		Owner:               "aws",
		ConfigurationValues: in.ConfigurationValues,
	}, entry: entry}
	if err := s.setIdentities(c, a, in.PodIdentityAssociations); err != nil {
		return nil, err
	}
	c.addons[a.AddonName] = a
	s.rollOut(c, a, createFailed, nil)
	return a.output(), nil
}

// setIdentities changes the pod identity associations of an add-on to the wanted ones.
func (s *Service) setIdentities(c *cluster, a *addon, wanted []AddonPodIdentity) error {
	for _, arn := range a.PodIdentityAssociations {
		for id, p := range c.identities {
			if p.AssociationARN == arn {
				delete(c.identities, id)
			}
		}
	}
	a.PodIdentityAssociations = nil
	for _, w := range wanted {
		p, err := s.newPodIdentity(c, CreatePodIdentityAssociationInput{
			Namespace: a.entry.namespace, ServiceAccount: w.ServiceAccount, RoleArn: w.RoleArn,
		}, a.AddonARN)
		if err != nil {
			return err
		}
		a.PodIdentityAssociations = append(a.PodIdentityAssociations, p.AssociationARN)
	}
	return nil
}

// rollOut changes an add-on to its version in the background and watches until it is available. failure is the status if the change cannot
// begin. u receives the result. The caller holds s.mu.
func (s *Service) rollOut(c *cluster, a *addon, failure string, u *Update) {
	a.run++
	run, version, client, cidr := a.run, a.AddonVersion, c.admin, c.KubernetesNetworkConfig.ServiceIpv4Cidr
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		err := s.install(ctx, client, a.entry, version, cidr)
		if s.config.Clock.Work(ctx, addonWork) != nil {
			return
		}
		if err != nil {
			s.settle(c, a, run, failure, &Issue{Code: "InternalFailure", Message: err.Error(), ResourceIDs: []string{}}, u)
			return
		}
		if a.entry.providesNetwork {
			s.provideNetwork(ctx, c)
		}
		s.watch(ctx, c, a, run, u)
	})
}

// watch waits until the add-on's pods are available. The add-on is DEGRADED after degradedWork if no pod became available within
// addonGrace, when the scheduler rejected one, or within addonPatience otherwise. It becomes ACTIVE if the pods are available later.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_AddonIssue.html
func (s *Service) watch(ctx context.Context, c *cluster, a *addon, run int, u *Update) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	late := make(chan struct{})
	s.work.Go(func() {
		if s.config.Clock.Work(ctx, degradedWork) == nil && s.config.Clock.Timer(ctx, addonGrace) == nil {
			close(late)
		}
	})
	counted, moved := int64(0), s.config.Clock.Now()
	resynced := moved
	for {
		ok, lacking, up, err := available(ctx, c.admin, a.entry)
		if up != counted {
			counted, moved = up, s.config.Clock.Now()
		}
		if ok {
			s.settle(c, a, run, active, nil, u)
			return
		}
		if now := s.config.Clock.Now(); now.Sub(moved) >= resyncAfter && now.Sub(resynced) >= resyncAfter {
			resynced = now
			s.resync(ctx, c, a.entry)
		}
		select {
		case <-late:
			idle := s.config.Clock.Now().Sub(moved)
			if idle < addonGrace || idle < addonPatience && !unschedulable(ctx, c.admin, a.entry) {
				break
			}
			message := "The add-on is unhealthy because it doesn't have the desired number of replicas."
			if err != nil {
				message += " " + err.Error()
			}
			s.settle(c, a, run, degraded, &Issue{Code: "InsufficientNumberOfReplicas", Message: message, ResourceIDs: []string{lacking}}, u)
			late, u = nil, nil
		default:
		}
		if s.config.Clock.Timer(ctx, addonPoll) != nil || !s.current(c, a, run) {
			return
		}
	}
}

// current reports whether a run has the current desired state of an add-on.
func (s *Service) current(c *cluster, a *addon, run int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.addons[a.AddonName] == a && a.run == run && c.Status != deleting
}

func (s *Service) settle(c *cluster, a *addon, run int, status string, issue *Issue, u *Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.addons[a.AddonName] != a || a.run != run {
		return
	}
	a.Status, a.ModifiedAt, a.Health.Issues = status, s.config.Clock.Now(), []Issue{}
	if issue != nil {
		a.Health.Issues = append(a.Health.Issues, *issue)
	}
	if u != nil {
		if u.Status = updateSuccessful; issue != nil {
			u.Status = updateFailed
			u.Errors = append(u.Errors, UpdateError{issue.Code, issue.Message, issue.ResourceIDs})
		}
	}
	s.changes.Announce()
}

// AddonInput names an add-on.
type AddonInput struct {
	ClusterName, AddonName string
}

// findAddon authorizes an action on an add-on and finds the add-on. The caller holds s.mu.
func (s *Service) findAddon(caller iam.Caller, action string, in AddonInput) (*cluster, *addon, error) {
	resource := s.arn(fmt.Sprintf("addon/%s/%s/", in.ClusterName, in.AddonName))
	c, err := s.find(in.ClusterName)
	var a *addon
	if err == nil {
		if a = c.addons[in.AddonName]; a != nil {
			resource = a.AddonARN
		}
	}
	if err := caller.Authorize("eks:"+action, resource, nil); err != nil {
		return nil, nil, err
	}
	if err == nil && a == nil {
		err = notFound("No addon: %s found in cluster: %s", in.AddonName, in.ClusterName)
	}
	return c, a, err
}

// DescribeAddon of the API.
func (s *Service) DescribeAddon(_ context.Context, caller iam.Caller, in AddonInput) (*AddonOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, a, err := s.findAddon(caller, "DescribeAddon", in)
	if err != nil {
		return nil, err
	}
	return a.output(), nil
}

// ListAddonsInput of the API.
type ListAddonsInput struct {
	ClusterName string
	Page
}

// ListAddonsOutput of the API.
type ListAddonsOutput struct {
	Addons    []string `json:"addons"`
	NextToken *string  `json:"nextToken"`
}

// ListAddons of the API.
func (s *Service) ListAddons(_ context.Context, caller iam.Caller, in ListAddonsInput) (*ListAddonsOutput, error) {
	if err := caller.Authorize("eks:ListAddons", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.ClusterName)
	if err != nil {
		return nil, err
	}
	names, next := in.paginate(keys(c.addons))
	return &ListAddonsOutput{names, next}, nil
}

// UpdateAddonInput of the API.
type UpdateAddonInput struct {
	AddonInput
	AddonVersion, ServiceAccountRoleArn, ResolveConflicts, ClientRequestToken string
	ConfigurationValues                                                       *string
	PodIdentityAssociations                                                   *[]AddonPodIdentity
}

// UpdateAddon of the API.
func (s *Service) UpdateAddon(_ context.Context, caller iam.Caller, in UpdateAddonInput) (*UpdateOutput, error) {
	var identities []AddonPodIdentity
	if in.PodIdentityAssociations != nil {
		identities = *in.PodIdentityAssociations
	}
	if err := s.authorizeAddon(caller, in.ClusterName, in.ServiceAccountRoleArn, identities); err != nil {
		return nil, err
	}
	configuration := ""
	if in.ConfigurationValues != nil {
		configuration = *in.ConfigurationValues
	}
	if err := checkAddon(in.ResolveConflicts, configuration); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, a, err := s.findAddon(caller, "UpdateAddon", in.AddonInput)
	if err != nil {
		return nil, err
	}
	if err := s.authorizeIdentities(caller, "UpdateAddon", in.ClusterName, a.PodIdentityAssociations, identities); err != nil {
		return nil, err
	}
	if a.Status == creating || a.Status == updating || a.Status == deleting {
		return nil, inUse("Addon %s is %s and cannot be updated", a.AddonName, a.Status)
	}
	u := &Update{
		ID: uuid(), Status: updateInProgress, Type: "AddonUpdate", Params: []UpdateParam{}, CreatedAt: s.config.Clock.Now(),
		Errors: []UpdateError{}, addon: a.AddonName,
	}
	if in.AddonVersion != "" {
		if err := a.entry.check(in.AddonVersion, c.Version); err != nil {
			return nil, err
		}
		a.AddonVersion = in.AddonVersion
		u.Params = append(u.Params, UpdateParam{"AddonVersion", in.AddonVersion})
	}
	if in.ServiceAccountRoleArn != "" {
		a.ServiceAccountRoleArn = in.ServiceAccountRoleArn
		u.Params = append(u.Params, UpdateParam{"ServiceAccountRoleArn", in.ServiceAccountRoleArn})
	}
	if in.ConfigurationValues != nil {
		a.ConfigurationValues = configuration
		u.Params = append(u.Params, UpdateParam{"ConfigurationValues", configuration})
	}
	if in.PodIdentityAssociations != nil {
		if err := s.setIdentities(c, a, identities); err != nil {
			return nil, err
		}
		u.Params = append(u.Params, UpdateParam{"PodIdentityAssociations", join(identities)})
	}
	c.updates = append(c.updates, u)
	a.Status = updating
	s.rollOut(c, a, updateFailedStatus, u)
	return &UpdateOutput{u.copy()}, nil
}

// DeleteAddonInput of the API.
type DeleteAddonInput struct {
	AddonInput
	Preserve bool
}

// DeleteAddon removes an add-on, and its workloads unless Preserve is set.
func (s *Service) DeleteAddon(_ context.Context, caller iam.Caller, in DeleteAddonInput) (*AddonOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, a, err := s.findAddon(caller, "DeleteAddon", in.AddonInput)
	if err != nil {
		return nil, err
	}
	if err := s.authorizeIdentities(caller, "DeleteAddon", in.ClusterName, a.PodIdentityAssociations, nil); err != nil {
		return nil, err
	}
	if a.Status == deleting {
		return a.output(), nil
	}
	a.Status = deleting
	a.run++
	if err := s.setIdentities(c, a, nil); err != nil {
		return nil, err
	}
	client := c.admin
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if !in.Preserve {
			if err := uninstall(ctx, client, a.entry); err != nil {
				s.config.Log.Warn("an add-on's objects stay", "cluster", c.Name, "addon", a.AddonName, "error", err)
			}
		}
		if s.config.Clock.Work(ctx, addonWork) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(c.addons, a.AddonName)
		if a.entry.providesNetwork && !in.Preserve {
			c.networkReady = false
		}
		s.changes.Announce()
	})
	return a.output(), nil
}
