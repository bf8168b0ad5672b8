package eks

// Updates of a cluster's version: to the next minor, and within seven days back to the previous one.
// https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
)

// The types of version updates.
const (
	versionUpdate   = "VersionUpdate"
	versionRollback = "VersionRollback"
)

const (
	// rollbackWindow is the time after a version update in which a cluster can be rolled back. It is real time, like every period that AWS
	// counts in days.
	rollbackWindow = 7 * 24 * time.Hour
	// freeAddresses is the number of addresses in each subnet that an update needs for new network interfaces.
	freeAddresses = 5
)

// The phases of a version update: new API servers start and are checked, and then the old ones are removed. They add up to versionWork.
const (
	launchWork = 5 * time.Minute
	retireWork = versionWork - launchWork
)

// UpdateClusterVersionInput of the API.
type UpdateClusterVersionInput struct {
	Name, Version, ClientRequestToken string
	Force                             bool
}

// UpdateClusterVersion changes a cluster to the next minor version, or back to the previous one.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterVersion.html
func (s *Service) UpdateClusterVersion(ctx context.Context, caller iam.Caller, in UpdateClusterVersionInput) (*UpdateOutput, error) {
	if err := caller.Authorize("eks:UpdateClusterVersion", s.clusterARN(in.Name), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c, kind, err := s.mayMove(in)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if kind == versionRollback && !in.Force {
		if err := s.readyForRollback(ctx, c); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, kind, err = s.mayMove(in); err != nil { // the cluster may have changed in between
		return nil, err
	}
	return s.move(c, kind, in.Version)
}

// mayMove returns the type of update by which a cluster may change to a version. The caller holds s.mu.
func (s *Service) mayMove(in UpdateClusterVersionInput) (*cluster, string, error) {
	c, err := s.findUpdatable(in.Name)
	if err != nil {
		return nil, "", err
	}
	kind := versionUpdate
	switch minorNumber(in.Version) - minorNumber(c.Version) {
	case 1:
	case -1:
		kind = versionRollback
		if err := s.mayRollBack(c, in.Version); err != nil {
			return nil, "", err
		}
	default:
		return nil, "", invalid("Unsupported Kubernetes minor version update from %s to %s", c.Version, in.Version)
	}
	return c, kind, s.checkVersion(in.Version)
}

// mayRollBack checks the conditions that force does not override.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html#rollback-prerequisites
func (s *Service) mayRollBack(c *cluster, version string) error {
	now := s.config.Clock.Now()
	i := slices.IndexFunc(calendar, func(v calendarRow) bool { return v.minor == version })
	switch {
	case c.upgradedFrom != version:
		return invalid("Cluster %s cannot be rolled back to version %s: it was not upgraded from it to its version %s in place", c.Name,
			version, c.Version)
	case now.Sub(c.upgradedAt) > rollbackWindow:
		return invalid("Cluster %s cannot be rolled back to version %s: the upgrade ended on %s, and rollback is available for 7 days", c.Name,
			version, c.upgradedAt.Format(time.RFC3339))
	case i >= 0 && calendar[i].support(now) == extendedSupport && c.UpgradePolicy.SupportType != "EXTENDED":
		return invalid("Cluster %s cannot be rolled back to version %s, which is in extended support: "+
			"change its upgrade policy to EXTENDED first", c.Name, version)
	}
	return nil
}

// move starts a version update. The caller holds s.mu.
func (s *Service) move(c *cluster, kind, version string) (*UpdateOutput, error) {
	subnets, err := s.config.Network.Subnets(c.ResourcesVpcConfig.SubnetIds...)
	if err != nil {
		return nil, invalidRequest("%v", err)
	}
	if err := roomForControlPlane(subnets); err != nil {
		return nil, err
	}
	interfaces, err := s.makeInterfaces(c, subnets, c.ResourcesVpcConfig.SecurityGroupIds)
	if err != nil {
		return nil, invalidRequest("%v", err)
	}
	u := s.newUpdate(c, kind, UpdateParam{"Version", version}, UpdateParam{"PlatformVersion", platformVersion})
	c.Status = updating
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		failure := s.replaceServers(ctx, c, kind, version)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		defer s.changes.Announce()
		c.Status = active
		if failure != nil { // the cluster stays unchanged
			s.dropInterfaces(interfaces)
			u.Status = updateFailed
			u.Errors = append(u.Errors, *failure)
			s.config.Log.Error("an update of a cluster failed", "cluster", c.Name, "update", kind, "error", failure.Message)
			return
		}
		s.dropInterfaces(c.interfaces)
		c.interfaces, u.Status = interfaces, updateSuccessful
		c.upgradedFrom, c.upgradedAt = "", s.config.Clock.Now()
		if kind == versionUpdate {
			c.upgradedFrom = c.Version
		}
		c.Version = version
	})
	return &UpdateOutput{u.copy()}, nil
}

// roomForControlPlane refuses an update whose subnets have too few free addresses, with EKS's message.
func roomForControlPlane(subnets []ec2.Subnet) error {
	var full []string
	for _, n := range subnets {
		if n.AvailableAddress < freeAddresses {
			full = append(full, fmt.Sprintf("%s Free IPs: %d", n.ID, n.AvailableAddress))
		}
	}
	if len(full) > 0 {
		return invalidRequest("Provided subnets %s , need at least %d IPs in each subnet to be free for this operation",
			strings.Join(full, " "), freeAddresses)
	}
	return nil
}

// replaceServers does the work of a version update. It returns the reason of a failure, or nil.
func (s *Service) replaceServers(ctx context.Context, c *cluster, kind, version string) *UpdateError {
	if s.config.Clock.Work(ctx, launchWork) != nil {
		return nil
	}
	if code := s.config.UpdateFails(c.Name, kind); code != "" {
		return &UpdateError{
			Code: code, ResourceIDs: []string{
				c.Name,
			}, Message: fmt.Sprintf("The new control plane of %s, Kubernetes %s, did not pass its health checks; "+
				"the cluster remains on version %s", c.Name, version, c.Version),
		}
	}
	s.rememberDeprecated(ctx, c)
	if err := c.plane.SetMinor(ctx, version); err != nil {
		if back := c.plane.SetMinor(ctx, c.Version); back != nil {
			s.config.Log.Error("a control plane did not come back", "cluster", c.Name, "version", c.Version, "error", back)
		}
		return &UpdateError{Code: "Unknown", Message: err.Error(), ResourceIDs: []string{c.Name}}
	}
	_ = s.config.Clock.Work(ctx, retireWork) // the caller checks the context
	return nil
}
