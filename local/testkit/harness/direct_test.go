package harness

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// bubble runs a test with an account in virtual time.
func bubble(t *testing.T, test func(a *Account)) {
	synctest.Test(t, func(t *testing.T) {
		a := StartWith(t, Options{Bubble: true})
		defer a.Close()
		test(a)
	})
}

// Direct calls get the same answers as signed calls of the whole SDK, both on the first call and from the cache.
func TestDirectCallsGetTheSameAnswers(t *testing.T) {
	bubble(t, func(a *Account) {
		a.Cluster("demo", "  tags: {team: a}\n")
		ctx, bucket, key := context.Background(), aws.String(StateBucket), aws.String(names.Status("demo"))
		_, err := cloudformation.NewFromConfig(a.Config()).CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{
			StackName: aws.String("drover-demo-pool-b"), ChangeSetName: aws.String("another"), ChangeSetType: "CREATE",
			TemplateBody: aws.String(`{"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "<&"}}}}`),
			Tags:         []types.Tag{{Key: aws.String("k"), Value: aws.String("")}},
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		calls := map[string]func(aws.Config) (any, error){
			"a list of objects": func(c aws.Config) (any, error) {
				return s3.NewClient(c).ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: bucket, Prefix: aws.String("status/")})
			},
			"versions of an object": func(c aws.Config) (any, error) {
				return s3.NewClient(c).ListObjectVersions(ctx, &awss3.ListObjectVersionsInput{Bucket: bucket, Prefix: key})
			},
			"what of an object is no body": func(c aws.Config) (any, error) {
				out, err := s3.NewClient(c).GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
				if err == nil {
					out.Body = nil
				}
				return out, err
			},
			"an object that is not there": func(c aws.Config) (any, error) {
				return s3.NewClient(c).GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: aws.String("none/of them?&+")})
			},
			"a condition that does not hold": func(c aws.Config) (any, error) {
				return s3.NewClient(c).PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, IfNoneMatch: aws.String("*")})
			},
			"an object that has not changed": func(c aws.Config) (any, error) {
				out, err := s3.NewClient(c).GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
				if err != nil {
					return nil, err
				}
				return s3.NewClient(c).GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key, IfNoneMatch: out.ETag})
			},
			"a deletion of what has changed": func(c aws.Config) (any, error) {
				return s3.NewClient(c).DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: bucket, Key: key, IfMatch: aws.String("\"another\"")})
			},
			"no bucket, which the SDK refuses": func(c aws.Config) (any, error) {
				return s3.NewClient(c).GetObject(ctx, &awss3.GetObjectInput{Key: key})
			},
			"groups": func(c aws.Config) (any, error) {
				return autoscaling.NewFromConfig(c).DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
			},
			"stacks": func(c aws.Config) (any, error) {
				return cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{})
			},
			"a stack that is not there": func(c aws.Config) (any, error) {
				return cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String("none")})
			},
			"an EKS cluster": func(c aws.Config) (any, error) {
				return eks.NewFromConfig(c).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("drover-demo")})
			},
			"an EKS cluster that is not there": func(c aws.Config) (any, error) {
				return eks.NewFromConfig(c).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("none")})
			},
			"what a stack went through": func(c aws.Config) (any, error) {
				return cloudformation.NewFromConfig(c).DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{
					StackName: aws.String("drover-demo-pool-a"),
				})
			},
			"a change set": func(c aws.Config) (any, error) {
				return cloudformation.NewFromConfig(c).DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{
					StackName: aws.String("drover-demo-pool-b"), ChangeSetName: aws.String("another"), IncludePropertyValues: aws.Bool(true),
				})
			},
			"what a group went through": func(c aws.Config) (any, error) {
				return autoscaling.NewFromConfig(c).DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{})
			},
			"hooks": func(c aws.Config) (any, error) {
				return autoscaling.NewFromConfig(c).DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{
					AutoScalingGroupName: aws.String("drover-demo-pool-a"),
				})
			},
			"instances": func(c aws.Config) (any, error) {
				return autoscaling.NewFromConfig(c).DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{})
			},
			"what has tags": func(c aws.Config) (any, error) {
				return resourcegroupstaggingapi.NewFromConfig(c).GetResources(ctx, &resourcegroupstaggingapi.GetResourcesInput{})
			},
			"versions of Kubernetes": func(c aws.Config) (any, error) {
				return eks.NewFromConfig(c).DescribeClusterVersions(ctx, &eks.DescribeClusterVersionsInput{})
			},
			"versions of add-ons": func(c aws.Config) (any, error) {
				return eks.NewFromConfig(c).DescribeAddonVersions(ctx, &eks.DescribeAddonVersionsInput{AddonName: aws.String("coredns")})
			},
			"one execution": func(c aws.Config) (any, error) {
				return sfn.NewFromConfig(c).DescribeExecution(ctx, &sfn.DescribeExecutionInput{
					ExecutionArn: aws.String(a.StepFunctions.Executions()[0].ARN),
				})
			},
			"executions": func(c aws.Config) (any, error) {
				return sfn.NewFromConfig(c).ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: aws.String(a.converge)})
			},
			"no name, which the SDK refuses": func(c aws.Config) (any, error) {
				return eks.NewFromConfig(c).DescribeCluster(ctx, &eks.DescribeClusterInput{})
			},
		}
		whose := map[string]aws.Config{"a user": a.Config(), "a function": a.Functions.config("join")}
		for who, direct := range whose {
			whole := direct
			whole.APIOptions = nil
			for name, call := range calls {
				want, failed := call(whole)
				for range 2 {
					got, err := call(direct)
					require.Equal(t, failed == nil, err == nil, "%s, %s: %v, not %v", who, name, err, failed)
					require.Equal(t, fault.Code(failed), fault.Code(err), "%s, %s", who, name)
					require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreTypes(middleware.Metadata{}), cmp.Exporter(func(reflect.Type) bool {
						return true
					})), "%s, %s", who, name)
				}
			}
		}
	})
}

// A change that one caller makes to an answer is invisible to other callers.
func TestCachedAnswerIsACopy(t *testing.T) {
	bubble(t, func(a *Account) {
		a.Cluster("demo", "  tags: {team: a}\n")
		client := autoscaling.NewFromConfig(a.Config())
		a.answers.read, learnt = nil, &operations{as: map[string]reflect.Type{}}
		for range 3 {
			out, err := client.DescribeAutoScalingGroups(context.Background(), &autoscaling.DescribeAutoScalingGroupsInput{})
			require.NoError(t, err)
			group := &out.AutoScalingGroups[0]
			require.NotEmpty(t, group.Instances)
			require.NotEmpty(t, *group.Tags[0].Key)
			group.Tags[0].Key, group.Instances[0].LaunchTemplate.Version, group.Instances = aws.String(""), aws.String(""), nil
		}
		require.Equal(t, 1, len(a.answers.read["Auto Scaling DescribeAutoScalingGroups"]), "the others are handed over")
		for range 3 { // this operation has no direct path
			out, err := a.admin.ListObjectsV2(context.Background(), &awss3.ListObjectsV2Input{
				Bucket: aws.String(StateBucket), Prefix: aws.String("status/"),
			})
			require.NoError(t, err)
			require.NotEmpty(t, *out.Contents[0].Key)
			out.Contents[0].Key = aws.String("")
		}
		require.Equal(t, 1, len(a.answers.read["S3 ListObjectsV2"]))
	})
}

// TestDirectCallsAreRetried tests that the SDK retries a direct call as often as any other call.
func TestDirectCallsAreRetried(t *testing.T) {
	bubble(t, func(a *Account) {
		client, bucket, key := s3.NewClient(a.Functions.config("plan")), aws.String(StateBucket), aws.String(names.Status("x"))
		ctx := context.Background()
		put := func() (*awss3.PutObjectOutput, error) {
			return client.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: bytes.NewReader([]byte("all of it"))})
		}
		get := func() (*awss3.GetObjectOutput, error) {
			return client.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
		}
		for range 2 {
			for failures, succeeds := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
				left := 0
				a.OnCall(func(endpoint.Call) error {
					if left--; left >= 0 {
						return &wire.Error{Code: "SlowDown", Message: "slower", Status: http.StatusServiceUnavailable}
					}
					return nil
				})
				for _, call := range []func() error{
					func() error { _, err := put(); return err },
					func() error {
						out, err := get()
						if err == nil {
							read, _ := io.ReadAll(out.Body)
							require.Equal(t, "all of it", string(read))
						}
						return err
					},
				} {
					left = failures
					mark, began := a.Calls.Mark(), time.Now()
					err := call()
					require.Len(t, a.Calls.Since(mark), min(failures+1, 3))
					require.Equal(t, failures > 0, time.Since(began) > 0, "it waits before it tries again")
					if require.Equal(t, succeeds, err == nil, "%d failures: %v", failures, err); err != nil {
						require.Equal(t, "SlowDown", fault.Code(err))
					}
				}
			}
		}
	})
}
