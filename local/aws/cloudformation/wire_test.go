package cloudformation

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
)

// client is the client of the SDK, for a new account.
func client(t *testing.T) *sdk.Client {
	t.Helper()
	c := &clock.Clock{Speed: 1e6}
	roles := iam.New(testAccount, testRegion, c)
	service := New(Config{Region: testRegion, Account: testAccount, Clock: c, Roles: roles})
	t.Cleanup(service.Close)
	service.Register(map[string]resource.Provider{thingType: newShelf(), "AWS::IAM::Role": newShelf()})
	at := endpoint.New(roles, nil)
	at.Handle(service.Wire())
	server := httptest.NewServer(at)
	t.Cleanup(server.Close)
	_, admin := roles.Admin()
	return sdk.New(sdk.Options{
		Region: testRegion, BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(admin.AccessKeyID, admin.SecretAccessKey, admin.SessionToken),
	})
}

func requireCode(t *testing.T, err error, code, text string) {
	t.Helper()
	var known smithy.APIError
	require.ErrorAs(t, err, &known)
	require.Equal(t, code, known.ErrorCode(), known.ErrorMessage())
	require.Contains(t, known.ErrorMessage(), text)
}

func TestSDKChangesAndDeletesAStack(t *testing.T) {
	ctx, c, name := t.Context(), client(t), aws.String("s")
	created, err := c.CreateChangeSet(ctx, &sdk.CreateChangeSetInput{
		StackName: name, ChangeSetName: aws.String("one"), ChangeSetType: types.ChangeSetTypeCreate, ClientToken: aws.String("t1"),
		TemplateBody: aws.String("Parameters: {Size: {Type: Number}}\n" + things(`A: {Size: !Ref Size}`) +
			"Outputs: {Id: {Value: !Ref A, Export: {Name: id}}}\n"),
		Parameters:   []types.Parameter{{ParameterKey: aws.String("Size"), ParameterValue: aws.String("1")}},
		Tags:         []types.Tag{{Key: aws.String("drover:checksum"), Value: aws.String("x <&> y")}},
		Capabilities: []types.Capability{types.CapabilityCapabilityIam},
	})
	require.NoError(t, err)
	waiter := sdk.NewChangeSetCreateCompleteWaiter(c, func(o *sdk.ChangeSetCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 2*time.Millisecond
	})
	describe := &sdk.DescribeChangeSetInput{ChangeSetName: created.Id}
	require.NoError(t, waiter.Wait(ctx, describe, time.Minute))
	set, err := c.DescribeChangeSet(ctx, describe)
	require.NoError(t, err)
	require.Equal(t, types.ExecutionStatusAvailable, set.ExecutionStatus)
	require.Equal(t, "A", *set.Changes[0].ResourceChange.LogicalResourceId)
	require.Equal(t, types.ChangeActionAdd, set.Changes[0].ResourceChange.Action)
	_, err = c.ExecuteChangeSet(ctx, &sdk.ExecuteChangeSetInput{ChangeSetName: created.Id, ClientRequestToken: aws.String("create-x")})
	require.NoError(t, err)
	require.NoError(t, sdk.NewStackCreateCompleteWaiter(c, func(o *sdk.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 2*time.Millisecond
	}).Wait(ctx, &sdk.DescribeStacksInput{StackName: name}, time.Minute))

	stacks, err := c.DescribeStacks(ctx, &sdk.DescribeStacksInput{StackName: name})
	require.NoError(t, err)
	st := stacks.Stacks[0]
	require.Equal(t, "x <&> y", *st.Tags[0].Value)
	require.Equal(t, "1", *st.Parameters[0].ParameterValue)
	require.Equal(t, "id", *st.Outputs[0].ExportName)
	require.Equal(t, *created.Id, *st.ChangeSetId)
	require.Nil(t, st.DeletionTime)
	require.WithinDuration(t, time.Now(), *st.CreationTime, time.Minute)
	events, err := c.DescribeStackEvents(ctx, &sdk.DescribeStackEventsInput{StackName: name})
	require.NoError(t, err)
	require.Equal(t, "create-x", *events.StackEvents[0].ClientRequestToken)
	require.Equal(t, types.ResourceStatus(reviewInProgress), last(events.StackEvents).ResourceStatus)

	_, err = c.UpdateTerminationProtection(ctx, &sdk.UpdateTerminationProtectionInput{
		StackName: name, EnableTerminationProtection: aws.Bool(true),
	})
	require.NoError(t, err)
	_, err = c.DeleteStack(ctx, &sdk.DeleteStackInput{StackName: name})
	requireCode(t, err, "ValidationError", "TerminationProtection is enabled")
	_, err = c.UpdateTerminationProtection(ctx, &sdk.UpdateTerminationProtectionInput{
		StackName: name, EnableTerminationProtection: aws.Bool(false),
	})
	require.NoError(t, err)
	_, err = c.UpdateStack(ctx, &sdk.UpdateStackInput{
		StackName: name, UsePreviousTemplate: aws.Bool(true), Parameters: []types.Parameter{
			{ParameterKey: aws.String("Size"), UsePreviousValue: aws.Bool(true)},
		},
	})
	requireCode(t, err, "ValidationError", "No updates are to be performed.")
	_, err = c.DeleteStack(ctx, &sdk.DeleteStackInput{StackName: name})
	require.NoError(t, err)
	require.NoError(t, sdk.NewStackDeleteCompleteWaiter(c, func(o *sdk.StackDeleteCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 2*time.Millisecond
	}).Wait(ctx, &sdk.DescribeStacksInput{StackName: st.StackId}, time.Minute))
	_, err = c.DescribeStacks(ctx, &sdk.DescribeStacksInput{StackName: name})
	requireCode(t, err, "ValidationError", "Stack with id s does not exist")
	deleted, err := c.DescribeStacks(ctx, &sdk.DescribeStacksInput{StackName: st.StackId})
	require.NoError(t, err)
	require.Equal(t, types.StackStatusDeleteComplete, deleted.Stacks[0].StackStatus)
	require.NotNil(t, deleted.Stacks[0].DeletionTime)
}

func TestSDKKnowsTheErrors(t *testing.T) {
	ctx, c, name := t.Context(), client(t), aws.String("s")
	_, err := c.CreateStack(ctx, &sdk.CreateStackInput{
		StackName: name, TemplateBody: aws.String(things(`A: {}`)), ClientRequestToken: aws.String("t"),
	})
	require.NoError(t, err)
	_, err = c.CreateStack(ctx, &sdk.CreateStackInput{StackName: name, TemplateBody: aws.String(things(`A: {}`))})
	var exists *types.AlreadyExistsException
	require.ErrorAs(t, err, &exists)
	_, err = c.CreateStack(ctx, &sdk.CreateStackInput{
		StackName: name, TemplateBody: aws.String(things(`B: {}`)), ClientRequestToken: aws.String("t"),
	})
	var token *types.TokenAlreadyExistsException
	require.ErrorAs(t, err, &token)
	_, err = c.DescribeChangeSet(ctx, &sdk.DescribeChangeSetInput{StackName: name, ChangeSetName: aws.String("x")})
	var missing *types.ChangeSetNotFoundException
	require.ErrorAs(t, err, &missing)
	_, err = c.CreateStack(ctx, &sdk.CreateStackInput{
		StackName: aws.String("t"), TemplateBody: aws.String("Resources: {R: {Type: AWS::IAM::Role, Properties: {Name: x}}}"),
	})
	var capabilities *types.InsufficientCapabilitiesException
	require.ErrorAs(t, err, &capabilities)
	_, err = c.DetectStackDrift(ctx, &sdk.DetectStackDriftInput{StackName: name})
	requireCode(t, err, "UnsupportedByLocalAccount", "DetectStackDrift")
	_, err = c.CreateStack(ctx, &sdk.CreateStackInput{
		StackName: aws.String("t"), TemplateBody: aws.String(things(`A: {}`)), NotificationARNs: []string{"arn:x"},
	})
	requireCode(t, err, "UnsupportedByLocalAccount", "NotificationARNs")
}

func TestSDKReadsEveryResponse(t *testing.T) {
	ctx, c, name := t.Context(), client(t), aws.String("s")
	body := things(`A: {}`) + "Outputs: {Id: {Value: !Ref A, Export: {Name: id}}}\n"
	created, err := c.CreateStack(ctx, &sdk.CreateStackInput{StackName: name, TemplateBody: &body})
	require.NoError(t, err)
	require.NoError(t, sdk.NewStackCreateCompleteWaiter(c, func(o *sdk.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 2*time.Millisecond
	}).Wait(ctx, &sdk.DescribeStacksInput{StackName: created.StackId}, time.Minute))
	resources, err := c.DescribeStackResources(ctx, &sdk.DescribeStackResourcesInput{StackName: name})
	require.NoError(t, err)
	require.Equal(t, "A", *resources.StackResources[0].LogicalResourceId)
	detail, err := c.DescribeStackResource(ctx, &sdk.DescribeStackResourceInput{StackName: name, LogicalResourceId: aws.String("A")})
	require.NoError(t, err)
	require.Equal(t, types.ResourceStatusCreateComplete, detail.StackResourceDetail.ResourceStatus)
	listed, err := c.ListStackResources(ctx, &sdk.ListStackResourcesInput{StackName: name})
	require.NoError(t, err)
	require.Len(t, listed.StackResourceSummaries, 1)
	stacks, err := c.ListStacks(ctx, &sdk.ListStacksInput{StackStatusFilter: []types.StackStatus{types.StackStatusCreateComplete}})
	require.NoError(t, err)
	require.Len(t, stacks.StackSummaries, 1)
	template, err := c.GetTemplate(ctx, &sdk.GetTemplateInput{StackName: name})
	require.NoError(t, err)
	require.Equal(t, body, *template.TemplateBody)
	exports, err := c.ListExports(ctx, &sdk.ListExportsInput{})
	require.NoError(t, err)
	require.Equal(t, "id", *exports.Exports[0].Name)
	_, err = c.ValidateTemplate(ctx, &sdk.ValidateTemplateInput{TemplateBody: &body})
	require.NoError(t, err)
	_, err = c.GetTemplateSummary(ctx, &sdk.GetTemplateSummaryInput{StackName: name})
	require.NoError(t, err)
	_, err = c.SetStackPolicy(ctx, &sdk.SetStackPolicyInput{
		StackName:       name,
		StackPolicyBody: aws.String(`{"Statement": [{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}`),
	})
	require.NoError(t, err)
	policy, err := c.GetStackPolicy(ctx, &sdk.GetStackPolicyInput{StackName: name})
	require.NoError(t, err)
	require.Contains(t, *policy.StackPolicyBody, "Update:*")
	_, err = c.DeleteChangeSet(ctx, &sdk.DeleteChangeSetInput{StackName: name, ChangeSetName: aws.String("none")})
	require.NoError(t, err)
	sets, err := c.ListChangeSets(ctx, &sdk.ListChangeSetsInput{StackName: name})
	require.NoError(t, err)
	require.Empty(t, sets.Summaries)
}
