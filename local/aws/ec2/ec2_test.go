package ec2

// The world that the tests share: an EC2 with identities, and CloudFormation requests to its resource types.

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

const account, region = "111122223333", "us-east-1"

// world is an EC2 with its environment.
type world struct {
	*testing.T
	*Service
	iam   *iam.Service
	admin iam.Caller

	mu      sync.Mutex
	events  []string // detail-type and state, in order
	objects map[string]string
	nodes   map[string]Node
	refuse  error // the results of RegisterNode and DeregisterNode
}

func newWorld(t *testing.T, change func(*Config)) *world {
	c := &clock.Clock{}
	w := &world{T: t, iam: iam.New(account, region, c), objects: map[string]string{}, nodes: map[string]Node{}}
	w.admin, _ = w.iam.Admin()
	config := Config{Account: account, Region: region, Clock: c, Roles: w.iam, Objects: w, Events: w}
	if change != nil {
		change(&config)
	}
	w.Service = New(config)
	w.SetNodes(w)
	t.Cleanup(w.Service.Close)
	return w
}

func (w *world) Emit(_ context.Context, source, detailType string, resources []string, detail any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, _ := detail.(map[string]any)["state"].(string)
	w.events = append(w.events, detailType+" "+state)
}

func (w *world) ReadObject(_ context.Context, caller iam.Caller, bucket, key, _ string) ([]byte, error) {
	if err := caller.Authorize("s3:GetObject", "arn:aws:s3:::"+bucket+"/"+key, nil); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	body, ok := w.objects[bucket+"/"+key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(body), nil
}

func (w *world) RegisterNode(_ context.Context, n Node) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse == nil {
		w.nodes[n.Name] = n
	}
	return w.refuse
}

func (w *world) DeregisterNode(_ context.Context, _, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse == nil {
		delete(w.nodes, name)
	}
	return w.refuse
}

// role creates a role that a service may assume, and returns its caller.
func (w *world) role(name, policy string) iam.Caller {
	w.Helper()
	role, err := w.iam.CreateRole(iam.Role{
		Name: name, TrustDocument: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},
			"Action":"sts:AssumeRole"}}`,
	})
	require.NoError(w, err)
	if policy != "" {
		require.NoError(w, w.iam.PutRolePolicy(name, "p", `{"Version":"2012-10-17","Statement":`+policy+`}`))
	}
	caller, _, err := w.iam.AssumeRoleAs(w.iam.RoleARN(role), "test", "ec2.amazonaws.com")
	require.NoError(w, err)
	return caller
}

// make creates a resource like an administrator's stack.
func (w *world) make(typ string, properties map[string]any) (resource.Result, error) {
	return w.makeAs(w.admin, typ, properties)
}

func (w *world) makeAs(caller iam.Caller, typ string, properties map[string]any) (resource.Result, error) {
	return w.Resources()[typ].Create(w.Context(), w.request(caller, typ, properties))
}

func (w *world) request(caller iam.Caller, typ string, properties map[string]any) resource.Request {
	return resource.Request{
		StackName: "net", StackID: "stack/net/1", LogicalID: "It", Type: typ, Properties: properties, Caller: caller, Region: region,
		Account: account,
		Tags:    map[string]string{"team": "platform", "aws:cloudformation:stack-name": "net"},
	}
}

// must creates a resource and returns its ID.
func (w *world) must(typ string, properties map[string]any) string {
	w.Helper()
	result, err := w.make(typ, properties)
	require.NoError(w, err)
	require.NotEmpty(w, result.PhysicalID)
	return result.PhysicalID
}

func (w *world) drop(typ, id string, properties map[string]any) error {
	r := w.request(w.admin, typ, properties)
	r.PhysicalID = id
	return w.Resources()[typ].Delete(w.Context(), r)
}

func requireCode(t *testing.T, code string, err error) {
	t.Helper()
	var known *wire.Error
	require.True(t, errors.As(err, &known), "%v is no AWS error", err)
	require.Equal(t, code, known.Code, "%v", err)
}

// network is a VPC with one subnet and its default security group.
func (w *world) network() (vpcID, subnetID, groupID string) {
	w.Helper()
	vpcID = w.must("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": "true"})
	subnetID = w.must("AWS::EC2::Subnet", map[string]any{"VpcId": vpcID, "CidrBlock": "10.0.1.0/24", "AvailabilityZone": "us-east-1b"})
	groupID, err := w.CreateSecurityGroup(vpcID, "cluster", "the cluster's", true, nil)
	require.NoError(w, err)
	return vpcID, subnetID, groupID
}

// template is a launch template of an m6i.large with user data, and with a role for its nodes if given.
func (w *world) template(userData, image, groupID, role string, more map[string]any) Template {
	w.Helper()
	data := map[string]any{
		"ImageId": image, "InstanceType": "m6i.large", "SecurityGroupIds": []any{groupID},
		"UserData": base64.StdEncoding.EncodeToString([]byte(userData)),
	}
	if role != "" {
		_, err := w.iam.CreateInstanceProfile(iam.InstanceProfile{Name: role})
		require.NoError(w, err)
		require.NoError(w, w.iam.SetProfileRole(role, role))
		data["IamInstanceProfile"] = map[string]any{"Name": role}
	}
	for k, v := range more {
		data[k] = v
	}
	id := w.must("AWS::EC2::LaunchTemplate", map[string]any{"LaunchTemplateData": data})
	template, err := w.LaunchTemplate(id, "", "$Latest")
	require.NoError(w, err)
	return template
}
