package ec2

// The API on the wire, with raw query requests: some have what the SDK's client cannot send.

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// call sends a request "Action=…&…" and returns the status and the body.
func (w *world) call(caller iam.Caller, query string) (int, string) {
	w.Helper()
	form, err := url.ParseQuery(query)
	require.NoError(w, err)
	form.Set("Version", "2016-11-15")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	recorder := httptest.NewRecorder()
	_, _ = w.Wire().Serve(recorder, wire.Request{HTTP: r, Caller: caller, Region: region, Account: account, RequestID: "1"})
	body, err := io.ReadAll(recorder.Body)
	require.NoError(w, err)
	return recorder.Code, string(body)
}

// texts returns the text of all elements with a name.
func texts(t *testing.T, body, name string) []string {
	t.Helper()
	found := []string{}
	d := xml.NewDecoder(strings.NewReader(body))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err, body)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == name {
			var text string
			require.NoError(t, d.DecodeElement(&text, &start))
			found = append(found, text)
		}
	}
}

func TestDescribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.Close()
		vpc, subnet, group := w.network()
		template := w.template("", ImageID("1.36", "x86_64"), group, "", nil)
		var ids []string
		for range 7 {
			i, err := w.Launch(LaunchRequest{Template: template, SubnetID: subnet, Tags: map[string]string{"aws:autoscaling:groupName": "g"}})
			require.NoError(t, err)
			ids = append(ids, i.ID)
		}
		time.Sleep(pendingWork + bootWork)
		synctest.Wait()
		for name, test := range map[string]struct {
			query, element string
			want           []string
		}{
			"VPCs by id":              {"Action=DescribeVpcs&VpcId.1=" + vpc, "vpcId", []string{vpc}},
			"VPCs by a tag":           {"Action=DescribeVpcs&Filter.1.Name=tag:team&Filter.1.Value.1=plat*", "vpcId", []string{vpc}},
			"no VPC of another tag":   {"Action=DescribeVpcs&Filter.1.Name=tag:team&Filter.1.Value.1=other", "vpcId", []string{}},
			"subnets of a VPC":        {"Action=DescribeSubnets&Filter.1.Name=vpc-id&Filter.1.Value.1=" + vpc, "subnetId", []string{subnet}},
			"addresses that are left": {"Action=DescribeSubnets", "availableIpAddressCount", []string{"244"}},
			"security groups by name": {
				"Action=DescribeSecurityGroups&Filter.1.Name=group-name&Filter.1.Value.1=cluster", "groupName", []string{"cluster"},
			},
			"the first page of instances": {"Action=DescribeInstances&MaxResults=5", "instanceId", ids[:5]},
			"running instances": {
				"Action=DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=running", "instanceId", ids,
			},
			"no stopped instances": {
				"Action=DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=stopped", "instanceId", []string{},
			},
			"one instance's disk": {
				"Action=DescribeVolumes&Filter.1.Name=attachment.instance-id&Filter.1.Value.1=" + ids[0], "instanceId", []string{ids[0]},
			},
			"zones":    {"Action=DescribeAvailabilityZones", "zoneName", []string{"us-east-1a", "us-east-1b", "us-east-1c"}},
			"zone ids": {"Action=DescribeAvailabilityZones", "zoneId", []string{"use1-az4", "use1-az2", "use1-az1"}},
			"the image of a version": {
				"Action=DescribeImages&Filter.1.Name=name&Filter.1.Value.1=*arm64-standard-1.36-*", "imageId", []string{
					ImageID("1.36", "arm64"), RebuiltImageID("1.36", "arm64"),
				},
			},
			"an image of nodes that never join, by its id": {
				"Action=DescribeImages&Filter.1.Name=image-id&Filter.1.Value.1=" + SilentImageID("1.36", "arm64"), "imageId", []string{
					SilentImageID("1.36", "arm64"),
				},
			},
			"an instance type's processors": {"Action=DescribeInstanceTypes&InstanceType.1=m7g.large", "defaultVCpus", []string{"2"}},
			"offerings in a zone": {
				"Action=DescribeInstanceTypeOfferings&LocationType=availability-zone&Filter.1.Name=instance-type&Filter.1.Value.1=t4g.micro",
				"location", []string{"us-east-1a", "us-east-1b", "us-east-1c"},
			},
			"launch templates": {"Action=DescribeLaunchTemplates", "latestVersionNumber", []string{"1"}},
			"versions of a template": {
				"Action=DescribeLaunchTemplateVersions&LaunchTemplateId=" + template.ID + "&LaunchTemplateVersion.1=$Latest", "versionNumber",
				[]string{"1"},
			},
			"the main route table": {
				"Action=DescribeRouteTables&Filter.1.Name=association.main&Filter.1.Value.1=true", "gatewayId", []string{"local"},
			},
			"interfaces of an instance": {
				"Action=DescribeNetworkInterfaces&Filter.1.Name=attachment.instance-id&Filter.1.Value.1=" + ids[1], "privateIpAddress",
				[]string{"10.0.1.5"},
			},
			"tags of a resource": {
				"Action=DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1=" + subnet, "key", []string{"aws:cloudformation:stack-name", "team"},
			},
			"DNS of a VPC":         {"Action=DescribeVpcAttribute&Attribute=enableDnsHostnames&VpcId=" + vpc, "value", []string{"true"}},
			"no NAT gateways":      {"Action=DescribeNatGateways", "natGatewayId", []string{}},
			"no addresses":         {"Action=DescribeAddresses", "publicIp", []string{}},
			"no endpoints":         {"Action=DescribeVpcEndpoints", "vpcEndpointId", []string{}},
			"no internet gateways": {"Action=DescribeInternetGateways", "internetGatewayId", []string{}},
		} {
			status, body := w.call(w.admin, test.query)
			require.Equal(t, 200, status, "%s: %s", name, body)
			require.Equal(t, test.want, texts(t, body, test.element), "%s: %s", name, body)
		}
		_, body := w.call(w.admin, "Action=DescribeInstances&MaxResults=5")
		token := texts(t, body, "nextToken")
		require.Len(t, token, 1)
		_, body = w.call(w.admin, "Action=DescribeInstances&MaxResults=5&NextToken="+url.QueryEscape(token[0]))
		require.Equal(t, ids[5:], texts(t, body, "instanceId"))
		require.Empty(t, texts(t, body, "nextToken"), "pages end")

		_, body = w.call(w.admin, "Action=TerminateInstances&InstanceId.1="+ids[0])
		require.Equal(t, []string{"shutting-down", "running"}, texts(t, body, "name"))
		_, body = w.call(w.admin, "Action=GetConsoleOutput&InstanceId="+ids[0])
		require.Len(t, texts(t, body, "output"), 1)
	})
}

func TestDescribeMonitoring(t *testing.T) {
	for state, data := range map[string]map[string]any{
		"disabled": {}, "enabled": {"Monitoring": map[string]any{"Enabled": true}},
	} {
		t.Run(state, func(t *testing.T) {
			w := newWorld(t, nil)
			_, subnet, group := w.network()
			_, err := w.Launch(LaunchRequest{Template: w.template("", ImageID("1.36", "x86_64"), group, "", data), SubnetID: subnet})
			require.NoError(t, err)
			_, body := w.call(w.admin, "Action=DescribeInstances")
			require.Contains(t, body, "<monitoring><state>"+state+"</state></monitoring>")
		})
	}
}

func TestAPIErrors(t *testing.T) {
	w := newWorld(t, nil)
	vpc, _, _ := w.network()
	powerless := w.role("powerless", "")
	for name, test := range map[string]struct {
		caller       iam.Caller
		query, code  string
		status       int
		alsoContains string
	}{
		"an unknown operation is named": {
			caller: w.admin, query: "Action=RunInstances", code: "UnsupportedByLocalAccount", status: 400, alsoContains: "RunInstances",
		},
		"an unknown parameter is named": {
			caller: w.admin, query: "Action=DescribeVpcs&Vpc=1", code: "UnsupportedByLocalAccount", status: 400, alsoContains: "Vpc",
		},
		"an unknown filter is named": {
			caller: w.admin, query: "Action=DescribeVpcs&Filter.1.Name=color&Filter.1.Value.1=red", code: "InvalidParameterValue", status: 400,
			alsoContains: "color",
		},
		"an unknown id": {
			caller: w.admin, query: "Action=DescribeVpcs&VpcId.1=vpc-0", code: "InvalidVpcID.NotFound", status: 400, alsoContains: "vpc-0",
		},
		"a page that is too small": {
			caller: w.admin, query: "Action=DescribeVpcs&MaxResults=1", code: "InvalidParameterValue", status: 400, alsoContains: "maxResults",
		},
		"a token that is none": {caller: w.admin, query: "Action=DescribeVpcs&NextToken=x", code: "InvalidNextToken", status: 400},
		"reads need permission": {
			caller: powerless, query: "Action=DescribeVpcs", code: "UnauthorizedOperation", status: 403, alsoContains: "ec2:DescribeVpcs",
		},
		"deletions need permission": {
			caller: powerless, query: "Action=DeleteVpc&VpcId=" + vpc, code: "UnauthorizedOperation", status: 403, alsoContains: "vpc/" + vpc,
		},
		"a VPC in use stays": {caller: w.admin, query: "Action=DeleteVpc&VpcId=" + vpc, code: "DependencyViolation", status: 400},
		"tags of AWS are not for users": {
			caller: w.admin, query: "Action=CreateTags&ResourceId.1=" + vpc + "&Tag.1.Key=aws:x&Tag.1.Value=y", code: "InvalidParameterValue",
			status: 400, alsoContains: "reserved",
		},
		"tags of nothing": {
			caller: w.admin, query: "Action=CreateTags&ResourceId.1=vpc-0&Tag.1.Key=x&Tag.1.Value=y", code: "InvalidID", status: 400,
		},
		"instances that are not there": {
			caller: w.admin, query: "Action=TerminateInstances&InstanceId.1=i-0", code: "InvalidInstanceID.NotFound", status: 400,
		},
		"a VPC's tags are for VPCs": {
			caller: w.admin, query: "Action=CreateVpc&CidrBlock=10.0.0.0/16&TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=x",
			code: "InvalidParameterValue", status: 400, alsoContains: "subnet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := w.call(test.caller, test.query)
			require.Equal(t, test.status, status, body)
			require.Equal(t, []string{test.code}, texts(t, body, "Code"), body)
			require.Contains(t, body, test.alsoContains)
		})
	}
}

// A network that a user creates for clusters with network.existing.
func TestNetworkByHand(t *testing.T) {
	w := newWorld(t, nil)
	_, body := w.call(w.admin,
		"Action=CreateVpc&CidrBlock=10.7.0.0/16&TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.1.Key=Name&"+
			"TagSpecification.1.Tag.1.Value=mine")
	vpc := texts(t, body, "vpcId")[0]
	status, body := w.call(w.admin, "Action=ModifyVpcAttribute&EnableDnsHostnames.Value=true&VpcId="+vpc)
	require.Equal(t, 200, status, body)
	_, body = w.call(w.admin, "Action=CreateSubnet&CidrBlock=10.7.1.0/24&AvailabilityZone=us-east-1a&VpcId="+vpc)
	subnet := texts(t, body, "subnetId")[0]
	_, body = w.call(w.admin, "Action=CreateSecurityGroup&GroupName=g&GroupDescription=d&VpcId="+vpc)
	group := texts(t, body, "groupId")[0]
	_, body = w.call(w.admin, "Action=CreateTags&ResourceId.1="+subnet+"&Tag.1.Key=a&Tag.1.Value=b")
	require.Equal(t, []string{"true"}, texts(t, body, "return"))
	_, body = w.call(w.admin, "Action=DeleteTags&ResourceId.1="+vpc)
	require.Equal(t, []string{"true"}, texts(t, body, "return"))
	require.Len(t, w.Tagged(t.Context()), 1)
	for _, query := range []string{
		"Action=DeleteSecurityGroup&GroupId=" + group, "Action=DeleteSubnet&SubnetId=" + subnet, "Action=DeleteVpc&VpcId=" + vpc,
	} {
		status, body := w.call(w.admin, query)
		require.Equal(t, 200, status, body)
	}
}

// Volumes and interfaces as Kubernetes creates them outside of drover's stacks.
func TestVolumesAndInterfacesByHand(t *testing.T) {
	w := newWorld(t, nil)
	_, body := w.call(w.admin, "Action=CreateVpc&CidrBlock=10.7.0.0/16")
	vpc := texts(t, body, "vpcId")[0]
	_, body = w.call(w.admin, "Action=CreateSubnet&CidrBlock=10.7.1.0/24&AvailabilityZone=us-east-1a&VpcId="+vpc)
	subnet := texts(t, body, "subnetId")[0]
	const volume = "Action=CreateVolume&AvailabilityZone=us-east-1a&Size=10&TagSpecification.1.ResourceType=volume&" +
		"TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b"
	_, body = w.call(w.admin, volume+"&ClientToken=once")
	id := texts(t, body, "volumeId")[0]
	require.Equal(t, []string{"gp3"}, texts(t, body, "volumeType"))
	_, body = w.call(w.admin, volume+"&ClientToken=once")
	require.Equal(t, []string{id}, texts(t, body, "volumeId"), "the same client token makes nothing more")
	_, body = w.call(w.admin, volume)
	require.NotEqual(t, []string{id}, texts(t, body, "volumeId"))
	_, body = w.call(w.admin, "Action=DescribeVolumes&Filter.1.Name=tag:a&Filter.1.Value.1=b")
	require.Len(t, texts(t, body, "volumeId"), 2)

	_, body = w.call(w.admin, "Action=CreateNetworkInterface&Description=x&SubnetId="+subnet)
	card := texts(t, body, "networkInterfaceId")[0]
	_, body = w.call(w.admin, "Action=DescribeNetworkInterfaces&NetworkInterfaceId.1="+card)
	require.Equal(t, []string{"default"}, texts(t, body, "groupName"), "no group is the VPC's default group")
	status, _ := w.call(w.admin, "Action=DeleteSubnet&SubnetId="+subnet)
	require.Equal(t, 400, status, "the interface holds its subnet")
	for _, query := range []string{
		"Action=DeleteNetworkInterface&NetworkInterfaceId=" + card, "Action=DeleteSubnet&SubnetId=" + subnet,
		"Action=DeleteVolume&VolumeId=" + id,
	} {
		status, body := w.call(w.admin, query)
		require.Equal(t, 200, status, body)
	}

	powerless := w.role("powerless", "")
	for query, code := range map[string]string{
		"Action=CreateVolume&AvailabilityZone=us-east-1a&Size=10&VolumeType=io2": "UnsupportedByLocalAccount",
		"Action=CreateVolume&AvailabilityZone=us-east-1a":                        "InvalidParameterValue",
		"Action=CreateVolume&AvailabilityZone=eu-west-1a&Size=10":                "InvalidZone.NotFound",
		"Action=CreateNetworkInterface&SubnetId=subnet-0":                        "InvalidSubnetID.NotFound",
	} {
		_, body := w.call(w.admin, query)
		require.Equal(t, []string{code}, texts(t, body, "Code"), query)
	}
	_, body = w.call(powerless, volume)
	require.Equal(t, []string{"UnauthorizedOperation"}, texts(t, body, "Code"))
}
