package eks

// Updates of clusters: the version by one minor at a time, and the configuration by one kind of change at a time.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterConfig.html

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// Statuses of an update.
const (
	updateInProgress = "InProgress"
	updateSuccessful = "Successful"
	updateFailed     = "Failed"
)

// Update of a cluster or of an add-on, as the API describes it.
type Update struct {
	ID        string        `json:"id"`
	Status    string        `json:"status"`
	Type      string        `json:"type"`
	Params    []UpdateParam `json:"params"`
	CreatedAt time.Time     `json:"createdAt"`
	Errors    []UpdateError `json:"errors"`

	addon string
}

// UpdateParam is a changed setting of an update.
type UpdateParam struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// UpdateError is the reason why an update failed.
type UpdateError struct {
	Code        string   `json:"errorCode"`
	Message     string   `json:"errorMessage"`
	ResourceIDs []string `json:"resourceIds"`
}

// UpdateOutput of the operations that start an update.
type UpdateOutput struct {
	Update *Update `json:"update"`
}

func (s *Service) newUpdate(c *cluster, kind string, params ...UpdateParam) *Update {
	u := &Update{ID: uuid(), Status: updateInProgress, Type: kind, Params: params, CreatedAt: s.config.Clock.Now(), Errors: []UpdateError{}}
	c.updates = append(c.updates, u)
	return u
}

func (u *Update) copy() *Update {
	c := *u
	c.Errors = slices.Clone(u.Errors)
	return &c
}

// begin runs an update of a cluster in the background. After d of simulated time it calls apply without s.mu, and then set with s.mu held.
// The caller holds s.mu.
func (s *Service) begin(c *cluster, u *Update, d time.Duration, apply func(context.Context) error, set func()) *UpdateOutput {
	c.Status = updating
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, d) != nil {
			return
		}
		err := apply(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		defer s.changes.Announce()
		c.Status = active
		if err != nil {
			u.Status = updateFailed
			u.Errors = append(u.Errors, UpdateError{Code: "InternalFailure", Message: err.Error(), ResourceIDs: []string{c.Name}})
			s.config.Log.Error("an update of a cluster failed", "cluster", c.Name, "update", u.Type, "error", err)
			return
		}
		u.Status = updateSuccessful
		set()
	})
	return &UpdateOutput{u.copy()}
}

func nothing(context.Context) error { return nil }

// findUpdatable returns a cluster that is ACTIVE.
func (s *Service) findUpdatable(name string) (*cluster, error) {
	c, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if c.Status != active {
		for _, u := range c.updates {
			if u.Status == updateInProgress && u.addon == "" {
				return nil, inUse("Cannot update because cluster %s currently has update %s in progress", name, u.ID)
			}
		}
		return nil, inUse("Cannot update because cluster %s is %s", name, c.Status)
	}
	return c, nil
}

// UpdateClusterConfigInput of the API.
type UpdateClusterConfigInput struct {
	Name, ClientRequestToken string
	ResourcesVpcConfig       *VPCRequest
	Logging                  *Logging
	AccessConfig             *AccessConfig
	UpgradePolicy            *UpgradePolicy
	ZonalShiftConfig         *ZonalShiftConfig
	DeletionProtection       *bool

	ControlPlaneScalingConfig *ScalingConfig
	Components
}

// UpdateClusterConfig changes one kind of setting.
func (s *Service) UpdateClusterConfig(_ context.Context, caller iam.Caller, in UpdateClusterConfigInput) (*UpdateOutput, error) {
	if err := caller.Authorize("eks:UpdateClusterConfig", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findUpdatable(in.Name)
	if err != nil {
		return nil, err
	}
	kinds := 0
	for _, asked := range []bool{
		in.ResourcesVpcConfig != nil, in.Logging != nil, in.AccessConfig != nil, in.UpgradePolicy != nil, in.ZonalShiftConfig != nil,
		in.DeletionProtection != nil, in.ControlPlaneScalingConfig != nil, in.Components.isSet(),
	} {
		if asked {
			kinds++
		}
	}
	if kinds != 1 {
		return nil, invalid("Only one type of update can be allowed, and one is needed: the request has %d", kinds)
	}
	change := func(kind, param string, value any, set func()) (*UpdateOutput, error) {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		return s.begin(c, s.newUpdate(c, kind, UpdateParam{param, string(text)}), configWork, nothing, set), nil
	}
	switch {
	case in.ResourcesVpcConfig != nil:
		return s.updateVPC(c, *in.ResourcesVpcConfig)
	case in.Logging != nil:
		if err := checkSettings(CreateClusterInput{Logging: *in.Logging}); err != nil {
			return nil, err
		}
		// Types that the request does not contain stay unchanged.
		logging := allLogs(Logging{ClusterLogging: append(slices.Clone(c.Logging.ClusterLogging), in.Logging.ClusterLogging...)})
		return change("LoggingUpdate", "ClusterLogging", in.Logging.ClusterLogging, func() { c.Logging = logging })
	case in.AccessConfig != nil:
		if in.AccessConfig.AuthenticationMode == "API" {
			return nil, unchanged("Cluster is already at the desired configuration with authenticationMode: API")
		}
		return nil, invalid("Unsupported authentication mode update from API to %s", in.AccessConfig.AuthenticationMode)
	case in.UpgradePolicy != nil:
		if err := checkSettings(CreateClusterInput{UpgradePolicy: *in.UpgradePolicy}); err != nil {
			return nil, err
		}
		return change("UpgradePolicyUpdate", "UpgradePolicy", in.UpgradePolicy.SupportType, func() { c.UpgradePolicy = *in.UpgradePolicy })
	case in.ZonalShiftConfig != nil:
		return change("ZonalShiftConfigUpdate", "ZonalShiftConfig", in.ZonalShiftConfig.Enabled, func() {
			c.ZonalShiftConfig = in.ZonalShiftConfig
		})
	case in.ControlPlaneScalingConfig != nil:
		return s.updateTier(c, *in.ControlPlaneScalingConfig)
	case in.Components.isSet():
		return s.updateComponents(c, in.Components)
	default:
		return change("DeletionProtectionUpdate", "DeletionProtection", *in.DeletionProtection, func() {
			c.DeletionProtection = *in.DeletionProtection
		})
	}
}

// updateVPC changes either the endpoint's access or the subnets and security groups of the control plane.
func (s *Service) updateVPC(c *cluster, in VPCRequest) (*UpdateOutput, error) {
	vpc := c.ResourcesVpcConfig
	if in.SubnetIds != nil || in.SecurityGroupIds != nil {
		if in.EndpointPublicAccess != nil || in.EndpointPrivateAccess != nil || in.PublicAccessCidrs != nil {
			return nil, invalid("Only one type of update can be allowed")
		}
		if in.SubnetIds != nil {
			vpc.SubnetIds = in.SubnetIds
		}
		if in.SecurityGroupIds != nil {
			vpc.SecurityGroupIds = in.SecurityGroupIds
		}
		subnets, placed, err := s.placeCluster(VPCRequest{SubnetIds: vpc.SubnetIds})
		if err != nil {
			return nil, err
		}
		if placed.VPCID != vpc.VPCID {
			return nil, invalid("Subnets specified must belong to the VPC of the cluster, %s, not %s", vpc.VPCID, subnets[0].VPCID)
		}
		u := s.newUpdate(c, "VpcConfigUpdate", UpdateParam{
			"SubnetIds", join(vpc.SubnetIds),
		}, UpdateParam{"SecurityGroupIds", join(vpc.SecurityGroupIds)})
		return s.begin(c, u, configWork, nothing, func() { c.ResourcesVpcConfig = vpc }), nil
	}
	if in.EndpointPublicAccess != nil {
		vpc.EndpointPublicAccess = *in.EndpointPublicAccess
	}
	if in.EndpointPrivateAccess != nil {
		vpc.EndpointPrivateAccess = *in.EndpointPrivateAccess
	}
	cidrs := in.PublicAccessCidrs
	if cidrs == nil && vpc.EndpointPublicAccess {
		cidrs = vpc.PublicAccessCidrs
	}
	var err error
	if vpc.PublicAccessCidrs, err = checkEndpoint(vpc.EndpointPublicAccess, vpc.EndpointPrivateAccess, cidrs); err != nil {
		return nil, err
	}
	if vpc.EndpointPublicAccess == c.ResourcesVpcConfig.EndpointPublicAccess &&
		vpc.EndpointPrivateAccess == c.ResourcesVpcConfig.EndpointPrivateAccess &&
		slices.Equal(vpc.PublicAccessCidrs, c.ResourcesVpcConfig.PublicAccessCidrs) {
		return nil, unchanged("Cluster is already at the desired configuration with endpointPrivateAccess: %t , endpointPublicAccess: %t, "+
			"and Public Endpoint Restrictions: %v",
			vpc.EndpointPrivateAccess, vpc.EndpointPublicAccess, vpc.PublicAccessCidrs)
	}
	u := s.newUpdate(c, "EndpointAccessUpdate", UpdateParam{"EndpointPublicAccess", join(vpc.EndpointPublicAccess)},
		UpdateParam{"EndpointPrivateAccess", join(vpc.EndpointPrivateAccess)}, UpdateParam{"PublicAccessCidrs", join(vpc.PublicAccessCidrs)})
	return s.begin(c, u, configWork, nothing, func() { c.ResourcesVpcConfig = vpc }), nil
}

// join returns a value as JSON, as in update parameters.
func join(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// DescribeUpdateInput of the API.
type DescribeUpdateInput struct {
	Name, UpdateID, AddonName, NodegroupName, CapabilityName string
}

// DescribeUpdate of the API.
func (s *Service) DescribeUpdate(_ context.Context, caller iam.Caller, in DescribeUpdateInput) (*UpdateOutput, error) {
	if err := caller.Authorize("eks:DescribeUpdate", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.Name)
	if err != nil {
		return nil, err
	}
	for _, u := range c.updates {
		if u.ID == in.UpdateID && u.addon == in.AddonName {
			return &UpdateOutput{u.copy()}, nil
		}
	}
	return nil, notFound("No update found for ID: %s", in.UpdateID)
}

// ListUpdatesInput of the API.
type ListUpdatesInput struct {
	Name, AddonName, NodegroupName, CapabilityName string
	Page
}

// ListUpdatesOutput of the API.
type ListUpdatesOutput struct {
	UpdateIDs []string `json:"updateIds"`
	NextToken *string  `json:"nextToken"`
}

// ListUpdates of the API.
func (s *Service) ListUpdates(_ context.Context, caller iam.Caller, in ListUpdatesInput) (*ListUpdatesOutput, error) {
	if err := caller.Authorize("eks:ListUpdates", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.Name)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, u := range c.updates {
		if u.addon == in.AddonName {
			ids = append(ids, u.ID)
		}
	}
	names, next := in.paginate(ids)
	return &ListUpdatesOutput{names, next}, nil
}
