package ec2

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
)

func TestAddressRanges(t *testing.T) {
	w := newWorld(t, nil)
	vpc := w.must("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})
	w.must("AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.0.0/20"})
	w.must("AWS::EC2::VPCCidrBlock", map[string]any{"VpcId": vpc, "CidrBlock": "100.64.0.0/16"})
	w.must("AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "100.64.0.0/18", "AvailabilityZone": "us-east-1c"})
	for name, test := range map[string]struct {
		typ        string
		properties map[string]any
		code       string
	}{
		"a VPC larger than /16 is refused":       {"AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/15"}, "InvalidVpc.Range"},
		"a VPC smaller than /28 is refused":      {"AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/29"}, "InvalidVpc.Range"},
		"a VPC of loopback addresses is refused": {"AWS::EC2::VPC", map[string]any{"CidrBlock": "127.0.0.0/16"}, "InvalidVpc.Range"},
		"text is no block":                       {"AWS::EC2::VPC", map[string]any{"CidrBlock": "ten"}, "InvalidParameterValue"},
		"an IPv6 block is none here":             {"AWS::EC2::VPC", map[string]any{"CidrBlock": "fd00::/16"}, "InvalidParameterValue"},
		"a subnet outside of its VPC is refused": {
			"AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.1.0.0/24"}, "InvalidSubnet.Range",
		},
		"a subnet that overlaps another is refused": {
			"AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.15.0/24"}, "InvalidSubnet.Conflict",
		},
		"a subnet in an unknown zone is refused": {
			"AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.64.0/24", "AvailabilityZone": "us-east-1f"}, "InvalidParameterValue",
		},
		"a subnet of an unknown VPC is refused": {
			"AWS::EC2::Subnet", map[string]any{"VpcId": "vpc-1", "CidrBlock": "10.0.64.0/24"}, "InvalidVpcID.NotFound",
		},
		"a range of another private class is none": {
			"AWS::EC2::VPCCidrBlock", map[string]any{"VpcId": vpc, "CidrBlock": "192.168.0.0/16"}, "InvalidVpc.Range",
		},
		"a range that overlaps the primary is none": {
			"AWS::EC2::VPCCidrBlock", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.128.0/17"}, "InvalidVpc.Range",
		},
		"a range that overlaps a secondary is none": {
			"AWS::EC2::VPCCidrBlock", map[string]any{"VpcId": vpc, "CidrBlock": "100.64.0.0/18"}, "InvalidVpc.Range",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.make(test.typ, test.properties)
			requireCode(t, test.code, err)
		})
	}
	t.Run("a VPC has at most five ranges", func(t *testing.T) {
		for i := range 3 {
			w.must("AWS::EC2::VPCCidrBlock", map[string]any{"VpcId": vpc, "CidrBlock": fmt.Sprintf("10.%d.0.0/16", i+1)})
		}
		_, err := w.make("AWS::EC2::VPCCidrBlock", map[string]any{"VpcId": vpc, "CidrBlock": "10.9.0.0/16"})
		requireCode(t, "VpcCidrLimitExceeded", err)
	})
	t.Run("an unknown property is named", func(t *testing.T) {
		_, err := w.make("AWS::EC2::LaunchTemplate", map[string]any{"LaunchTemplateData": map[string]any{"ImageID": "ami-1"}})
		require.ErrorContains(t, err, "#/LaunchTemplateData: extraneous key [ImageID] is not permitted")
	})
}

func TestRangeWithSubnetStays(t *testing.T) {
	w := newWorld(t, nil)
	vpc := w.must("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})
	properties := map[string]any{"VpcId": vpc, "CidrBlock": "100.64.0.0/16"}
	block := w.must("AWS::EC2::VPCCidrBlock", properties)
	subnet := w.must("AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "100.64.0.0/18"})
	requireCode(t, "DependencyViolation", w.drop("AWS::EC2::VPCCidrBlock", block, properties))
	require.NoError(t, w.drop("AWS::EC2::Subnet", subnet, nil))
	require.NoError(t, w.drop("AWS::EC2::VPCCidrBlock", block, properties))
}

// A network is created in order, nothing in use can be deleted, and all of it is deleted in the reverse order.
func TestNetworkDependencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.Close()
		vpc := w.must("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": true})
		subnet := w.must("AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.0.0/24"})
		eip := w.must("AWS::EC2::EIP", map[string]any{"Domain": "vpc"})
		allocation := w.Service.addresses.all()[0].id
		natProperties := map[string]any{"SubnetId": subnet, "AllocationId": allocation}
		_, err := w.make("AWS::EC2::NatGateway", natProperties)
		requireCode(t, "Gateway.NotAttached", err)

		igw := w.must("AWS::EC2::InternetGateway", nil)
		attachment := map[string]any{"VpcId": vpc, "InternetGatewayId": igw}
		attached := w.must("AWS::EC2::VPCGatewayAttachment", attachment)
		started := time.Now()
		nat := w.must("AWS::EC2::NatGateway", natProperties)
		require.Equal(t, natGatewayWork, time.Since(started), "a NAT gateway takes its time")
		table := w.must("AWS::EC2::RouteTable", map[string]any{"VpcId": vpc})
		route := w.must("AWS::EC2::Route", map[string]any{"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": nat})
		association := w.must("AWS::EC2::SubnetRouteTableAssociation", map[string]any{"RouteTableId": table, "SubnetId": subnet})
		s3 := w.must("AWS::EC2::VPCEndpoint", map[string]any{
			"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.s3", "VpcEndpointType": "Gateway", "RouteTableIds": []any{table},
		})
		group := w.must("AWS::EC2::SecurityGroup", map[string]any{
			"VpcId": vpc, "GroupDescription": "endpoints", "SecurityGroupIngress": []any{
				map[string]any{"IpProtocol": "tcp", "FromPort": 443.0, "ToPort": 443.0, "CidrIp": "10.0.0.0/16"},
			},
		})
		sts := w.must("AWS::EC2::VPCEndpoint", map[string]any{
			"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.sts", "VpcEndpointType": "Interface", "SubnetIds": []any{subnet},
			"SecurityGroupIds": []any{group}, "PrivateDnsEnabled": true,
		})

		inUse := func(typ, id string, properties map[string]any, code string) {
			t.Helper()
			requireCode(t, code, w.drop(typ, id, properties))
		}
		inUse("AWS::EC2::VPC", vpc, nil, "DependencyViolation")
		inUse("AWS::EC2::Subnet", subnet, nil, "DependencyViolation")
		inUse("AWS::EC2::SecurityGroup", group, nil, "DependencyViolation")
		inUse("AWS::EC2::RouteTable", table, nil, "DependencyViolation")
		inUse("AWS::EC2::InternetGateway", igw, nil, "DependencyViolation")
		inUse("AWS::EC2::VPCGatewayAttachment", attached, attachment, "DependencyViolation")
		inUse("AWS::EC2::EIP", eip, nil, "InvalidIPAddress.InUse")

		for _, removed := range []struct {
			typ, id    string
			properties map[string]any
		}{
			{"AWS::EC2::VPCEndpoint", sts, nil}, {"AWS::EC2::VPCEndpoint", s3, nil}, {"AWS::EC2::SecurityGroup", group, nil},
			{"AWS::EC2::SubnetRouteTableAssociation", association, nil}, {"AWS::EC2::Route", route, nil}, {"AWS::EC2::RouteTable", table, nil},
			{"AWS::EC2::NatGateway", nat, nil}, {"AWS::EC2::EIP", eip, nil}, {"AWS::EC2::VPCGatewayAttachment", attached, attachment},
			{"AWS::EC2::InternetGateway", igw, nil}, {"AWS::EC2::Subnet", subnet, nil}, {"AWS::EC2::VPC", vpc, nil},
		} {
			require.NoError(t, w.drop(removed.typ, removed.id, removed.properties), removed.typ)
			require.NoError(t, w.drop(removed.typ, removed.id, removed.properties), "deleting again causes no error: "+removed.typ)
		}
		require.Empty(t, w.interfaces.all())
	})
}

func TestSecurityGroups(t *testing.T) {
	w := newWorld(t, nil)
	vpc, _, cluster := w.network()
	ingress := func(rules ...any) map[string]any {
		return map[string]any{"VpcId": vpc, "GroupDescription": "d", "SecurityGroupIngress": rules}
	}
	https := map[string]any{"IpProtocol": "tcp", "FromPort": "443", "ToPort": "443", "CidrIp": "0.0.0.0/0"}
	fromCluster := map[string]any{"IpProtocol": "-1", "SourceSecurityGroupId": cluster}

	id := w.must("AWS::EC2::SecurityGroup", ingress(https))
	g, _ := w.groups.get(id)
	require.Equal(t, []rule{{protocol: "tcp", from: 443, to: 443, cidr: "0.0.0.0/0"}}, g.ingress)
	require.Equal(t, []rule{allowAll()}, g.egress, "without rules of its own a group lets everything out")

	r := w.request(w.admin, "AWS::EC2::SecurityGroup", ingress(fromCluster))
	r.PhysicalID, r.Old = id, ingress(https)
	_, err := w.Resources()[r.Type].Update(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []rule{{protocol: "-1", from: -1, to: -1, group: cluster}}, g.ingress)
	requireCode(t, "DependencyViolation", w.Service.DeleteSecurityGroup(cluster))

	outgoing := map[string]any{"GroupId": id, "IpProtocol": "tcp", "FromPort": 443.0, "ToPort": 443.0, "DestinationSecurityGroupId": cluster}
	separate := w.must("AWS::EC2::SecurityGroupEgress", outgoing)
	incoming := map[string]any{"GroupId": id, "IpProtocol": "udp", "FromPort": 53.0, "ToPort": 53.0, "SourceSecurityGroupId": cluster}
	w.must("AWS::EC2::SecurityGroupIngress", incoming)
	_, err = w.make("AWS::EC2::SecurityGroupIngress", incoming)
	requireCode(t, "InvalidPermission.Duplicate", err)
	r.Properties, r.Old = ingress(https), ingress(fromCluster)
	_, err = w.Resources()[r.Type].Update(t.Context(), r)
	require.NoError(t, err)
	dns := rule{protocol: "udp", from: 53, to: 53, group: cluster}
	require.Equal(t, []rule{dns, {protocol: "tcp", from: 443, to: 443, cidr: "0.0.0.0/0"}}, g.ingress,
		"a separate rule is not the group's own")
	require.Len(t, g.egress, 2)
	require.NoError(t, w.drop("AWS::EC2::SecurityGroupEgress", separate, outgoing))
	require.NoError(t, w.drop("AWS::EC2::SecurityGroupEgress", separate, outgoing), "deleting twice succeeds")
	require.Equal(t, []rule{allowAll()}, g.egress)

	for name, bad := range map[string]map[string]any{
		"ports the wrong way round": {"IpProtocol": "tcp", "FromPort": 9.0, "ToPort": 1.0, "CidrIp": "0.0.0.0/0"},
		"no peer":                   {"IpProtocol": "tcp", "FromPort": 1.0, "ToPort": 9.0},
		"a block with host bits":    {"IpProtocol": "-1", "CidrIp": "10.0.0.1/8"},
		"an unknown protocol":       {"IpProtocol": "quic", "CidrIp": "0.0.0.0/0"},
		"a group that is not there": {"IpProtocol": "-1", "SourceSecurityGroupId": "sg-0"},
	} {
		_, err := w.make("AWS::EC2::SecurityGroup", ingress(bad))
		require.Error(t, err, name)
	}
}

func TestNetworkQuotas(t *testing.T) {
	for kind, code := range map[string]string{
		"AWS::EC2::EIP": "AddressLimitExceeded", "AWS::EC2::InternetGateway": "InternetGatewayLimitExceeded",
		"AWS::EC2::VPC": "VpcLimitExceeded",
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, nil)
			properties := map[string]any{}
			if kind == "AWS::EC2::VPC" {
				properties["CidrBlock"] = "10.0.0.0/16"
			}
			for range 5 {
				w.must(kind, properties)
			}
			_, err := w.make(kind, properties)
			requireCode(t, code, err)
			six := func() int { return 6 }
			w.config.Quotas = Quotas{VPCs: six, InternetGateways: six, Addresses: six}
			w.must(kind, properties)
			_, err = w.make(kind, properties)
			requireCode(t, code, err)
		})
	}
	t.Run("NAT gateways have a quota in each zone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			w.config.Quotas.NATGateways = func() int { return 1 }
			network := w.must("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})
			nat := func(zone, cidr string) (resource.Result, error) {
				subnet := w.must("AWS::EC2::Subnet", map[string]any{"VpcId": network, "CidrBlock": cidr, "AvailabilityZone": zone})
				return w.make("AWS::EC2::NatGateway", map[string]any{"SubnetId": subnet, "ConnectivityType": "private"})
			}
			first, err := nat("us-east-1a", "10.0.0.0/24")
			require.NoError(t, err)
			_, err = nat("us-east-1a", "10.0.1.0/24")
			requireCode(t, "NatGatewayLimitExceeded", err)
			_, err = nat("us-east-1b", "10.0.2.0/24")
			require.NoError(t, err)
			require.NoError(t, w.drop("AWS::EC2::NatGateway", first.PhysicalID, nil))
			_, err = nat("us-east-1a", "10.0.3.0/24")
			require.NoError(t, err, "a deleted gateway does not count")
		})
	})
}

// A role like drover's for CloudFormation may create tagged resources, and change those with the tag.
func TestTagConditions(t *testing.T) {
	w := newWorld(t, nil)
	const policy = `[
		{"Effect":"Allow","Action":"ec2:Describe*","Resource":"*"},
		{"Effect":"Allow","Action":"ec2:CreateVpc","Resource":"arn:aws:ec2:*:*:vpc/*",
			"Condition":{"StringEquals":{"aws:RequestTag/team":"platform"}}},
		{"Effect":"Allow","Action":"ec2:CreateSubnet","Resource":"arn:aws:ec2:*:*:subnet/*",
			"Condition":{"StringEquals":{"aws:RequestTag/team":"platform"}}},
		{"Effect":"Allow","Action":["ec2:CreateSubnet","ec2:DeleteVpc"],"Resource":"arn:aws:ec2:*:*:vpc/*",
			"Condition":{"StringEquals":{"aws:ResourceTag/team":"platform"}}},
		{"Effect":"Allow","Action":"ec2:CreateTags","Resource":"*","Condition":{"StringEquals":{"ec2:CreateAction":["CreateVpc",` +
		`"CreateSubnet"]}}}]`
	caller := w.role("cloudformation", policy)
	vpc := map[string]any{"CidrBlock": "10.0.0.0/16"}

	made, err := w.makeAs(caller, "AWS::EC2::VPC", vpc)
	require.NoError(t, err)
	_, err = w.makeAs(caller, "AWS::EC2::Subnet", map[string]any{"VpcId": made.PhysicalID, "CidrBlock": "10.0.0.0/24"})
	require.NoError(t, err)

	r := w.request(caller, "AWS::EC2::VPC", vpc)
	r.Tags = nil
	_, err = w.Resources()[r.Type].Create(t.Context(), r)
	requireCode(t, "UnauthorizedOperation", err)
	require.ErrorContains(t, err, "is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:us-east-1:111122223333:vpc/*")

	foreign, err := w.createVPC(w.admin, "10.1.0.0/16", "", true, false, map[string]string{"team": "other"})
	require.NoError(t, err)
	_, err = w.makeAs(caller, "AWS::EC2::Subnet", map[string]any{"VpcId": foreign.id, "CidrBlock": "10.1.0.0/24"})
	requireCode(t, "UnauthorizedOperation", err)
	requireCode(t, "UnauthorizedOperation", w.deleteVPC(caller, foreign.id))

	_, err = w.makeAs(caller, "AWS::EC2::VPC", map[string]any{"CidrBlock": "10.2.0.0/16", "EnableDnsHostnames": true})
	require.ErrorContains(t, err, "ec2:ModifyVpcAttribute", "what a handler does after creation needs permission too")
	requireCode(t, "UnauthorizedOperation", w.createTags(caller, []string{made.PhysicalID}, map[string]string{"a": "b"}))
}

func TestTagsFollowTheStack(t *testing.T) {
	w := newWorld(t, nil)
	properties := map[string]any{"CidrBlock": "10.0.0.0/16", "Tags": []any{map[string]any{"Key": "Name", "Value": "one"}}}
	id := w.must("AWS::EC2::VPC", properties)
	require.NoError(t, w.createTags(w.admin, []string{id}, map[string]string{"by-hand": "yes"}))
	r := w.request(w.admin, "AWS::EC2::VPC", map[string]any{
		"CidrBlock": "10.0.0.0/16", "Tags": []any{map[string]any{"Key": "Name", "Value": "two"}},
	})
	r.PhysicalID, r.Old, r.Tags = id, properties, map[string]string{"cost": "1"}
	_, err := w.Resources()[r.Type].Update(t.Context(), r)
	require.NoError(t, err)
	v, _ := w.vpcs.get(id)
	require.Equal(t, map[string]string{"Name": "two", "cost": "1", "by-hand": "yes"}, v.tags)
	require.Len(t, w.Tagged(t.Context()), 1)
}

func TestSchemasKnowEveryProperty(t *testing.T) {
	w := newWorld(t, nil)
	for typ, p := range w.Resources() {
		for name := range p.Schema().Properties {
			_, err := p.Create(t.Context(), w.request(w.admin, typ, map[string]any{name: map[string]any{"\x00": 1.0}}))
			if err != nil {
				require.NotContains(t, err.Error(), "extraneous key ["+name+"]", typ)
			}
		}
	}
	var _ resource.Provider = provider{}
}
