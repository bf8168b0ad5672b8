package ec2

// Flow logs of VPCs to S3. They are stored without effect: there are no packets. The policy of the bucket is not checked.
// https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-s3-permissions.html

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// flowLog of a VPC.
type flowLog struct {
	object
	vpc, traffic, destination string
}

// FlowLogs returns the destinations of the flow logs of a VPC, with the traffic.
func (s *Service) FlowLogs(vpc string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := map[string]string{}
	for _, l := range s.flowLogs.all() {
		if l.vpc == vpc {
			logs[l.destination] = l.traffic
		}
	}
	return logs
}

func (s *Service) flowLogProvider() provider {
	type properties struct {
		ResourceId, ResourceType, TrafficType, LogDestinationType, LogDestination string
		Tags                                                                      []resource.Tag
	}
	read := func(id string) (resource.Result, error) {
		return resource.Result{PhysicalID: id, Attributes: map[string]any{"Id": id}}, nil
	}
	return provider{
		schema: schema("ResourceId! ResourceType! TrafficType! LogDestinationType! LogDestination! Tags", "ResourceId ResourceType", "Id"),
		create: func(_ context.Context, r resource.Request) (resource.Result, error) {
			var p properties
			if err := decode(r, &p); err != nil {
				return resource.Result{}, err
			}
			if p.ResourceType != "VPC" || p.LogDestinationType != "s3" {
				return resource.Result{}, wire.Unsupported("ec2", "flow logs other than those of VPCs to S3")
			}
			if !slices.Contains([]string{"ALL", "ACCEPT", "REJECT"}, p.TrafficType) || !strings.Contains(p.LogDestination, ":s3:::") {
				return resource.Result{}, fail("InvalidParameter", "LogDestination %s or TrafficType %s is invalid", p.LogDestination, p.TrafficType)
			}
			if err := s.mayRead(r.Caller, "DescribeFlowLogs"); err != nil {
				return resource.Result{}, err
			}
			if err := r.Caller.Authorize("logs:CreateLogDelivery", "*", nil); err != nil {
				return resource.Result{}, err
			}
			tags := tagsOf(r, p.Tags)
			s.mu.Lock()
			defer s.mu.Unlock()
			v, err := s.vpc(p.ResourceId)
			if err != nil {
				return resource.Result{}, err
			}
			if err := s.allowMaking(r.Caller, "CreateFlowLogs", "vpc-flow-log", tags, on(v.object)); err != nil {
				return resource.Result{}, err
			}
			l := &flowLog{object: s.newObject("vpc-flow-log", "fl", tags), vpc: v.id, traffic: p.TrafficType, destination: p.LogDestination}
			l.stackTags = clone(tags)
			s.flowLogs.put(l.id, l)
			return read(l.id)
		},
		update: func(ctx context.Context, r resource.Request) (resource.Result, error) {
			return s.updateTags(ctx, r, read)
		},
		delete: func(_ context.Context, r resource.Request) error {
			if err := r.Caller.Authorize("logs:DeleteLogDelivery", "*", nil); err != nil {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			l, ok := s.flowLogs.get(r.PhysicalID)
			if !ok {
				return fail("InvalidFlowLogId.NotFound", "These flow log ids in the input list are not found: %s", r.PhysicalID)
			}
			if err := s.allow(r.Caller, "DeleteFlowLogs", on(l.object)); err != nil {
				return err
			}
			s.flowLogs.delete(l.id)
			return nil
		},
	}
}
