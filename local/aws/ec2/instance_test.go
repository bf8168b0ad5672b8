package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// An instance is pending, runs, boots and becomes a node. Its termination deletes its node, address and disks.
func TestInstanceLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.Close()
		_, subnet, group := w.network()
		w.role("node", "")
		template := w.template(multipartData(nodeConfigPart), ImageID("1.36", "amd64"), group, "node", map[string]any{
			"BlockDeviceMappings": []any{map[string]any{"DeviceName": "/dev/xvda", "Ebs": map[string]any{"VolumeType": "gp3", "VolumeSize": 50.0}}},
			"TagSpecifications": []any{
				map[string]any{"ResourceType": "instance", "Tags": []any{map[string]any{"Key": "pool", "Value": "workers"}}},
			},
		})
		i, err := w.Launch(LaunchRequest{Template: template, SubnetID: subnet, Tags: map[string]string{"aws:autoscaling:groupName": "g"}})
		require.NoError(t, err)
		require.Equal(t, Pending, i.State)
		require.Equal(t, "ip-10-0-1-4.ec2.internal", i.PrivateDNSName)
		require.Equal(t, map[string]string{
			"pool": "workers", "aws:autoscaling:groupName": "g", "aws:ec2launchtemplate:id": template.ID, "aws:ec2launchtemplate:version": "1",
		}, i.Tags)
		started := time.Now()
		_, err = w.AwaitInstance(t.Context(), i.ID, Running)
		require.NoError(t, err)
		require.Equal(t, pendingWork, time.Since(started))
		time.Sleep(bootWork)
		synctest.Wait()
		want := Node{
			Cluster: "drover-demo", Endpoint: "https://127.0.0.1:1", CertificateAuthority: "Y2E=", ServiceCIDR: "172.20.0.0/16",
			Name: "ip-10-0-1-4.ec2.internal", ProviderID: "aws:///us-east-1b/" + i.ID, RoleARN: "arn:aws:iam::111122223333:role/node",
			InstanceID: i.ID, InstanceType: "m6i.large", ImageID: ImageID("1.36", "x86_64"), Region: region, Zone: "us-east-1b", Subnet: subnet,
			Architecture: "amd64", KubeletVersion: "v1.36.3-eks-0e3cf2b", OSImage: "Amazon Linux 2023", Address: "10.0.1.4",
			Labels: map[string]string{
				"drover.run/pool": "workers", "tier": "web",
			}, Taints: []Taint{{"a", "b", "NoSchedule"}, {"spot", "", "PreferNoSchedule"}},
			KubeletFlags: []string{"--v=2"}, MaxPods: 17, VCPUs: 2, MemoryMiB: 8192, DiskGiB: 50,
		}
		require.Empty(t, cmp.Diff(map[string]Node{want.Name: want}, w.nodes))
		requireCode(t, "DependencyViolation", w.drop("AWS::EC2::Subnet", subnet, nil))

		require.NoError(t, w.Terminate(i.ID, "Client.UserInitiatedShutdown"))
		require.NoError(t, w.Terminate(i.ID, "Client.UserInitiatedShutdown"), "twice is once")
		_, err = w.AwaitInstance(t.Context(), i.ID, Terminated)
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, w.nodes)
		require.Empty(t, w.volumes.all())
		require.NoError(t, w.drop("AWS::EC2::Subnet", subnet, nil))
		const change = "EC2 Instance State-change Notification "
		require.Equal(t, []string{change + Pending, change + Running, change + ShuttingDown, change + Terminated}, w.events)
		time.Sleep(graveWork)
		synctest.Wait()
		_, err = w.Instance(i.ID)
		requireCode(t, "InvalidInstanceID.NotFound", err)
	})
}

// The instance metadata cannot give access to a tag whose key has a slash, so EC2 refuses the launch.
func TestLaunchWithTagsInMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		byDefault bool
		option    string
		refused   bool
	}{
		"the account has no default":                          {},
		"the account enables it":                              {byDefault: true, refused: true},
		"the account enables it and the template disables it": {byDefault: true, option: "disabled"},
		"the template enables it":                             {option: "enabled", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *Config) { c.MetadataTags = test.byDefault })
				defer w.Close()
				_, subnet, group := w.network()
				more := map[string]any{"TagSpecifications": []any{
					map[string]any{"ResourceType": "instance", "Tags": []any{map[string]any{"Key": "kubernetes.io/cluster/demo", "Value": "owned"}}},
				}}
				if test.option != "" {
					more["MetadataOptions"] = map[string]any{"InstanceMetadataTags": test.option}
				}
				_, err := w.Launch(LaunchRequest{Template: w.template("", ImageID("1.36", "amd64"), group, "", more), SubnetID: subnet})
				if !test.refused {
					require.NoError(t, err)
					return
				}
				requireCode(t, "InvalidParameterValue", err)
				require.ErrorContains(t, err, "'kubernetes.io/cluster/demo' is not a valid tag key")
			})
		})
	}
}

// A node with an invalid configuration does not join, and the console shows the reason.
func TestFailedBoot(t *testing.T) {
	configuration := "#!/bin/bash\necho hello\n"
	sum := sha256.Sum256([]byte(configuration))
	hash := hex.EncodeToString(sum[:])
	fetch := "#!/bin/bash\naws s3 cp --region 'us-east-1' 's3://drover-state/userdata/" + hash + "' \"$work/configuration\"\n"
	mayRead := `{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::drover-state/userdata/*"}`
	for name, test := range map[string]struct {
		userData, image, policy string
		noRole                  bool
		stored                  string
		refuse                  error
		console                 string
	}{
		"a fetched configuration with the right hash joins": {
			userData: multipartData(nodeConfigPart, fetch), image: "1.36", policy: mayRead, stored: configuration,
			console: "Successfully registered node",
		},
		"one with other content does not": {
			userData: multipartData(nodeConfigPart, fetch), image: "1.36", policy: mayRead, stored: "evil",
			console: "computed checksum did NOT match",
		},
		"one that is not there does not": {
			userData: multipartData(nodeConfigPart, fetch), image: "1.36", policy: mayRead, console: "file does not exist",
		},
		"one that the role may not read does not": {
			userData: multipartData(nodeConfigPart, fetch), image: "1.36", stored: configuration,
			console: "is not authorized to perform: s3:GetObject",
		},
		"without a role there are no credentials": {
			userData: multipartData(nodeConfigPart, fetch), image: "1.36", noRole: true, stored: configuration,
			console: "Unable to locate credentials",
		},
		"user data without a NodeConfig joins nothing": {
			userData: "#!/bin/bash\ntrue\n", image: "1.36", console: "no NodeConfig in user data",
		},
		"no user data joins nothing": {image: "1.36", console: "no NodeConfig in user data"},
		"a NodeConfig with an unknown field is refused": {
			userData: multipartData("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelett: {}\n"), image: "1.36",
			console: "field kubelett not found",
		},
		"a NodeConfig without a cluster name is refused": {
			userData: multipartData("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n"), image: "1.36",
			console: "Name is missing in cluster configuration",
		},
		"a part of an unknown type is refused": {
			userData: strings.ReplaceAll(multipartData(nodeConfigPart), "application/node.eks.aws", "text/plain"), image: "1.36",
			console: "unhandled non-multipart (text/plain) userdata",
		},
		"malformed labels are refused": {
			userData: multipartData(strings.ReplaceAll(nodeConfigPart, "tier=web", "tier")), image: "1.36", console: "malformed pair",
		},
		"malformed taints are refused": {
			userData: multipartData(strings.ReplaceAll(nodeConfigPart, "a=b:NoSchedule", "a=b:Never")), image: "1.36",
			console: "invalid taint spec: a=b:Never",
		},
		"an archive that ends early is refused": {
			userData: strings.TrimSuffix(multipartData(nodeConfigPart), "--drover--\n"), image: "1.36", console: "read MIME part",
		},
		"an API server that refuses the node is on the console": {
			userData: multipartData(nodeConfigPart), image: "1.36", refuse: errors.New("Unauthorized"),
			console: "Unable to register node with API server: Unauthorized",
		},
		"an image without kubelet joins nothing": {userData: multipartData(nodeConfigPart), image: "plain", console: "there is no kubelet"},
		"an image whose kubelet fails joins nothing": {
			userData: multipartData(nodeConfigPart), image: "silent", console: "kubelet.service: Main process exited",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const plain = "ami-00000000000000001"
				w := newWorld(t, func(c *Config) { c.Images = []Image{{ID: plain, Name: "al2023", Architecture: "x86_64"}} })
				defer w.Close()
				_, subnet, group := w.network()
				w.refuse = test.refuse
				if test.stored != "" {
					w.objects["drover-state/userdata/"+hash] = test.stored
				}
				role, image := "node", plain
				switch test.image {
				case "silent":
					image = SilentImageID("1.36", "x86_64")
				case "1.36":
					image = ImageID("1.36", "x86_64")
				}
				w.role(role, test.policy)
				if test.noRole {
					role = ""
				}
				i, err := w.Launch(LaunchRequest{Template: w.template(test.userData, image, group, role, nil), SubnetID: subnet})
				require.NoError(t, err)
				time.Sleep(pendingWork + bootWork)
				synctest.Wait()
				console, err := w.Console(i.ID)
				require.NoError(t, err)
				require.Contains(t, console, test.console)
				joined := strings.Contains(test.console, "Successfully")
				require.Equal(t, joined, len(w.nodes) == 1)
			})
		})
	}
}

// A rejected kubelet retries, because an access entry may be created after its nodes.
func TestRegistrationIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.Close()
		_, subnet, group := w.network()
		w.refuse = errors.New("Unauthorized")
		i, err := w.Launch(LaunchRequest{
			Template: w.template(multipartData(nodeConfigPart), ImageID("1.36", "x86_64"), group, "", nil), SubnetID: subnet,
		})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Empty(t, w.nodes)
		console, err := w.Console(i.ID)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(console, "Unauthorized"), "the same text is written once")
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		time.Sleep(registerRetry)
		synctest.Wait()
		require.Len(t, w.nodes, 1)
	})
}

// If the API server is unreachable when an instance ends, the cloud controller retries.
func TestDeregistrationIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.Close()
		_, subnet, group := w.network()
		i, err := w.Launch(LaunchRequest{
			Template: w.template(multipartData(nodeConfigPart), ImageID("1.36", "x86_64"), group, "", nil), SubnetID: subnet,
		})
		require.NoError(t, err)
		time.Sleep(pendingWork + bootWork)
		synctest.Wait()
		require.Len(t, w.nodes, 1)
		answer := func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refuse = err
		}
		answer(errors.New("the API server is down"))
		require.NoError(t, w.Terminate(i.ID, ""))
		time.Sleep(shutdownWork + look/2)
		synctest.Wait()
		require.Len(t, w.nodes, 1)
		answer(nil)
		time.Sleep(look)
		synctest.Wait()
		require.Empty(t, w.nodes)
	})
}

func TestLaunchErrors(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.InstanceLimit = 1 })
	_, subnet, group := w.network()
	template := w.template("", ImageID("1.36", "x86_64"), group, "", nil)
	for name, test := range map[string]struct {
		change func(*LaunchRequest)
		code   string
	}{
		"an image that is not there":          {func(r *LaunchRequest) { r.ImageID = "ami-0" }, "InvalidAMIID.NotFound"},
		"an image id that is none":            {func(r *LaunchRequest) { r.ImageID = "al2023" }, "InvalidAMIID.Malformed"},
		"an unknown instance type":            {func(r *LaunchRequest) { r.InstanceType = "m6i.huge" }, "InvalidInstanceType"},
		"an architecture that does not match": {func(r *LaunchRequest) { r.InstanceType = "m7g.large" }, "InvalidParameterValue"},
		"an unknown subnet":                   {func(r *LaunchRequest) { r.SubnetID = "subnet-0" }, "InvalidSubnetID.NotFound"},
		"no subnet at all":                    {func(r *LaunchRequest) { r.SubnetID = "" }, "VPCIdNotSpecified"},
		"a group that is not there": {func(r *LaunchRequest) {
			r.Template.Data.SecurityGroupIds = []string{"sg-0"}
		}, "InvalidGroup.NotFound"},
		"a profile that is not there": {func(r *LaunchRequest) {
			r.Template.Data.IamInstanceProfile = &ProfileReference{Name: "no"}
		}, "InvalidParameterValue"},
	} {
		t.Run(name, func(t *testing.T) {
			r := LaunchRequest{Template: template, SubnetID: subnet}
			test.change(&r)
			_, err := w.Launch(r)
			requireCode(t, test.code, err)
			requireCode(t, test.code, w.CheckLaunch(w.admin, r))
		})
	}
	t.Run("more instances than the quota", func(t *testing.T) {
		_, err := w.Launch(LaunchRequest{Template: template, SubnetID: subnet})
		require.NoError(t, err)
		_, err = w.Launch(LaunchRequest{Template: template, SubnetID: subnet})
		requireCode(t, "VcpuLimitExceeded", err)
	})
	t.Run("more vCPUs than the quota", func(t *testing.T) {
		w := newWorld(t, nil)
		_, subnet, group := w.network()
		template := w.template("", ImageID("1.36", "x86_64"), group, "", nil)
		w.Service.config.VCPUs = func(spot bool) int { return map[bool]int{false: 5, true: 2}[spot] }
		launch := func(spot bool) error {
			_, err := w.Launch(LaunchRequest{Template: template, SubnetID: subnet, Spot: spot})
			return err
		}
		require.NoError(t, launch(false))
		require.NoError(t, launch(false))
		requireCode(t, "VcpuLimitExceeded", launch(false))
		require.NoError(t, launch(true), "spot has a quota of its own")
		requireCode(t, "MaxSpotInstanceCountExceeded", launch(true))
		require.NoError(t, w.Terminate(w.Living()[0].ID, "test"))
		require.NoError(t, launch(false), "what shuts down does not count")
	})
	t.Run("more addresses than the subnet has", func(t *testing.T) {
		w := newWorld(t, nil)
		vpc, _, group := w.network()
		small := w.must("AWS::EC2::Subnet", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.2.0/28"})
		template := w.template("", ImageID("1.36", "x86_64"), group, "", nil)
		for range 11 {
			_, err := w.Launch(LaunchRequest{Template: template, SubnetID: small})
			require.NoError(t, err)
		}
		_, err := w.Launch(LaunchRequest{Template: template, SubnetID: small})
		requireCode(t, "InsufficientFreeAddressesInSubnet", err)
	})
}

// The creator of a group needs the permissions of its launches.
func TestCheckLaunchPermissions(t *testing.T) {
	w := newWorld(t, nil)
	_, subnet, group := w.network()
	w.role("node", "")
	tags := map[string]any{
		"TagSpecifications": []any{map[string]any{"ResourceType": "instance", "Tags": []any{map[string]any{"Key": "a", "Value": "b"}}}},
	}
	r := LaunchRequest{Template: w.template("", ImageID("1.36", "x86_64"), group, "node", tags), SubnetID: subnet}
	run := `{"Effect":"Allow","Action":"ec2:RunInstances","Resource":"*",
		"Condition":{"ArnLikeIfExists":{"ec2:LaunchTemplate":"arn:aws:ec2:*:*:launch-template/*"}}}`
	tag := `{"Effect":"Allow","Action":"ec2:CreateTags","Resource":"*","Condition":{"StringEquals":{"ec2:CreateAction":"RunInstances"}}}`
	pass := `{"Effect":"Allow","Action":"iam:PassRole","Resource":"arn:aws:iam::*:role/node",
		"Condition":{"StringEquals":{"iam:PassedToService":"ec2.amazonaws.com"}}}`
	for name, test := range map[string]struct{ policy, missing string }{
		"all of it":             {"[" + run + "," + tag + "," + pass + "]", ""},
		"running is not enough": {"[" + run + "]", "ec2:CreateTags"},
		"the role is passed":    {"[" + run + "," + tag + "]", "iam:PassRole"},
		"nothing":               {"[" + pass + "]", "ec2:RunInstances"},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.CheckLaunch(w.role("cfn-"+strings.ReplaceAll(name, " ", "-"), test.policy), r)
			if test.missing == "" {
				require.NoError(t, err)
				return
			}
			requireCode(t, "UnauthorizedOperation", err)
			require.ErrorContains(t, err, test.missing)
		})
	}
}

func TestSpotInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.Close()
		_, subnet, group := w.network()
		template := w.template("", ImageID("1.36", "x86_64"), group, "", nil)
		onDemand, err := w.Launch(LaunchRequest{Template: template, SubnetID: subnet})
		require.NoError(t, err)
		require.Error(t, w.InterruptSpot(t.Context(), onDemand.ID))
		i, err := w.Launch(LaunchRequest{Template: template, SubnetID: subnet, Spot: true})
		require.NoError(t, err)
		require.NoError(t, w.InterruptSpot(t.Context(), i.ID))
		require.NoError(t, w.InterruptSpot(t.Context(), i.ID), "twice is once")
		started := time.Now()
		i, err = w.AwaitInstance(t.Context(), i.ID, ShuttingDown)
		require.NoError(t, err)
		require.Equal(t, 2*time.Minute, time.Since(started))
		require.Equal(t, "Server.SpotInstanceTermination", i.Reason)
		synctest.Wait()
		warnings := 0
		for _, e := range w.events {
			if strings.HasPrefix(e, "EC2 Spot Instance Interruption Warning") {
				warnings++
			}
		}
		require.Equal(t, 1, warnings)
	})
}

func TestLaunchTemplates(t *testing.T) {
	w := newWorld(t, nil)
	properties := func(userData string, more map[string]any) map[string]any {
		data := map[string]any{"ImageId": ImageID("1.36", "x86_64"), "UserData": userData}
		for k, v := range more {
			data[k] = v
		}
		return map[string]any{"LaunchTemplateData": data}
	}
	first, err := w.make("AWS::EC2::LaunchTemplate", properties("", nil))
	require.NoError(t, err)
	require.Equal(t, "1", first.Attributes["LatestVersionNumber"])

	r := w.request(w.admin, "AWS::EC2::LaunchTemplate", properties("aGk=", nil))
	r.PhysicalID, r.Old = first.PhysicalID, properties("", nil)
	second, err := w.Resources()[r.Type].Update(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "2", second.Attributes["LatestVersionNumber"])
	require.Equal(t, "1", second.Attributes["DefaultVersionNumber"], "CloudFormation leaves the default alone")
	r.Old = r.Properties
	again, err := w.Resources()[r.Type].Update(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "2", again.Attributes["LatestVersionNumber"], "what did not change makes no version")
	for version, want := range map[string]int{"$Latest": 2, "$Default": 1, "": 1, "2": 2} {
		template, err := w.LaunchTemplate(first.PhysicalID, "", version)
		require.NoError(t, err)
		require.Equal(t, want, template.Version)
	}
	_, err = w.LaunchTemplate(first.PhysicalID, "", "3")
	requireCode(t, "InvalidLaunchTemplateId.VersionNotFound", err)

	for name, test := range map[string]struct {
		properties map[string]any
		code       string
	}{
		"user data of more than 16 KiB": {properties(strings.Repeat("QUFB", 5462), nil), "InvalidParameterValue"},
		"user data that is no base64":   {properties("#!/bin/bash", nil), "InvalidUserData.Malformed"},
		"gp3 with too many IOPS": {
			properties("", map[string]any{
				"BlockDeviceMappings": []any{map[string]any{"DeviceName": "/dev/xvda", "Ebs": map[string]any{"VolumeType": "gp3", "Iops": 90000.0}}},
			}), "InvalidParameterCombination",
		},
		"io2 without IOPS": {
			properties("", map[string]any{
				"BlockDeviceMappings": []any{map[string]any{"DeviceName": "/dev/xvda", "Ebs": map[string]any{"VolumeType": "io2"}}},
			}), "MissingParameter",
		},
		"too many hops": {
			properties("", map[string]any{"MetadataOptions": map[string]any{"HttpPutResponseHopLimit": 65.0}}), "InvalidParameterValue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.make("AWS::EC2::LaunchTemplate", test.properties)
			requireCode(t, test.code, err)
		})
	}
}

// A disk begins with a snapshot, and is at least as large.
func TestDisksFromSnapshots(t *testing.T) {
	for name, test := range map[string]struct {
		ebs   map[string]any
		fails string
	}{
		"of the size of the snapshot": {map[string]any{"VolumeType": "gp3"}, ""},
		"smaller than the snapshot":   {map[string]any{"VolumeSize": 19.0}, "Volume of size 19GB is smaller than snapshot 'snap-"},
		"unknown": {
			map[string]any{"SnapshotId": "snap-0123456789abcdef0"}, "The snapshot 'snap-0123456789abcdef0' does not exist.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			_, subnet, group := w.network()
			if snap := w.AddSnapshot(20, true); test.ebs["SnapshotId"] == nil {
				test.ebs["SnapshotId"] = snap
			}
			data := map[string]any{"BlockDeviceMappings": []any{map[string]any{"DeviceName": "/dev/xvdb", "Ebs": test.ebs}}}
			_, err := w.Launch(LaunchRequest{Template: w.template("", ImageID("1.36", "x86_64"), group, "", data), SubnetID: subnet})
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails)
				return
			}
			require.NoError(t, err)
			_, body := w.call(w.admin, "Action=DescribeVolumes")
			require.Equal(t, []string{"20", "20"}, texts(t, body, "size"), "of the root disk, and of the snapshot")
			require.Contains(t, texts(t, body, "encrypted"), "true")
		})
	}
}
