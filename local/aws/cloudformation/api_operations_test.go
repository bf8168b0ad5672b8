package cloudformation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
)

func TestRequestsToCreateThatAreRefused(t *testing.T) {
	many := make([]Tag, 51)
	for i := range many {
		many[i] = Tag{Key: strings.Repeat("k", i+1)}
	}
	yes := true
	ok := things(`A: {}`)
	for name, test := range map[string]struct {
		in         CreateStackInput
		code, want string
	}{
		"an odd name": {CreateStackInput{StackName: "a_b", TemplateBody: ok}, "ValidationError", "stackName"},
		"a name of 129 letters": {
			CreateStackInput{StackName: strings.Repeat("a", 129), TemplateBody: ok}, "ValidationError", "stackName",
		},
		"an odd token": {
			CreateStackInput{ClientRequestToken: "a b", TemplateBody: ok}, "ValidationError", "clientRequestToken",
		},
		"a stack that is there": {
			CreateStackInput{StackName: "there", TemplateBody: ok}, "AlreadyExistsException", "Stack [there] already exists",
		},
		"no template": {CreateStackInput{}, "ValidationError", "Either Template URL or Template Body"},
		"two templates": {
			CreateStackInput{
				TemplateBody: ok, TemplateURL: "https://b.s3.amazonaws.com/k",
			}, "ValidationError", "Either Template URL or Template Body",
		},
		"51,201 bytes": {CreateStackInput{TemplateBody: ok + strings.Repeat("#", 51_201-len(ok))}, "ValidationError", "51200"},
		"a URL that is none": {
			CreateStackInput{TemplateURL: "https://example.com/a/b"}, "ValidationError", "TemplateURL must be a supported URL.",
		},
		"a URL without TLS": {
			CreateStackInput{TemplateURL: "http://b.s3.amazonaws.com/k"}, "ValidationError", "TemplateURL must be a supported URL.",
		},
		"a template not there": {
			CreateStackInput{TemplateURL: "https://b.s3.eu-west-1.amazonaws.com/nothing"}, "ValidationError", "S3 error: NoSuchKey",
		},
		"1,000,001 bytes": {
			CreateStackInput{
				TemplateURL: "https://b.s3.eu-west-1.amazonaws.com/large",
			}, "ValidationError", "Template may not exceed 1000000 bytes in size.",
		},
		"an unknown property": {
			CreateStackInput{
				TemplateBody: things(`A: {Color: red}`),
			}, "UnsupportedByLocalAccount", "the property Color of AWS::Test::Thing (resource A)",
		},
		"an unknown attribute": {
			CreateStackInput{
				TemplateBody: things(`A: {}`, `B: {Needs: !GetAtt A.Color}`),
			}, "ValidationError", "resource A does not support attribute type Color in Fn::GetAtt",
		},
		"an output of a wrong attribute": {
			CreateStackInput{TemplateBody: ok + "Outputs: {O: {Value: !GetAtt A.Color}}"}, "ValidationError", "Color",
		},
		"an unknown intrinsic": {
			CreateStackInput{TemplateBody: things(`A: {Size: {"Fn::Nope": 1}}`)}, "UnsupportedByLocalAccount", "Fn::Nope",
		},
		"an import of nothing": {
			CreateStackInput{TemplateBody: things(`A: {Size: !ImportValue x}`)}, "ValidationError", "No export named x found",
		},
		"zones of another region": {
			CreateStackInput{TemplateBody: things(`A: {Size: !GetAZs us-east-1}`)}, "ValidationError", "us-east-1",
		},
		"IAM without capability": {
			CreateStackInput{
				TemplateBody: "Resources: {R: {Type: AWS::IAM::Role}}",
			}, "InsufficientCapabilitiesException", "Requires capabilities : [CAPABILITY_IAM]",
		},
		"a parameter of Systems Manager": {
			CreateStackInput{
				TemplateBody: "Parameters: {P: {Type: 'AWS::SSM::Parameter::Value<String>', Default: x}}\n" + ok,
			}, "UnsupportedByLocalAccount", "AWS::SSM::Parameter::Value<String>",
		},
		"51 tags": {CreateStackInput{TemplateBody: ok, Tags: many}, "ValidationError", "tags"},
		"a tag of AWS": {
			CreateStackInput{TemplateBody: ok, Tags: []Tag{{"aws:x", "y"}}}, "ValidationError", "aws: prefixed tag key names",
		},
		"a tag twice": {
			CreateStackInput{TemplateBody: ok, Tags: []Tag{{"a", "x"}, {"a", "y"}}}, "ValidationError", "Duplicate tag keys found: [a]",
		},
		"a parameter twice": {
			CreateStackInput{TemplateBody: ok, Parameters: []Parameter{{ParameterKey: "P"}, {ParameterKey: "P"}}}, "ValidationError",
			"Duplicate parameter: P",
		},
		"OnFailure twice": {
			CreateStackInput{TemplateBody: ok, OnFailure: "DELETE", DisableRollback: &yes}, "ValidationError", "OnFailure and DisableRollback",
		},
		"an unknown OnFailure": {CreateStackInput{TemplateBody: ok, OnFailure: "X"}, "ValidationError", "onFailure"},
		"a role that is not there": {
			CreateStackInput{TemplateBody: ok, RoleARN: "arn:aws:iam::111122223333:role/missing"}, "ValidationError", "invalid or cannot be assumed",
		},
		"a stack policy that is none": {
			CreateStackInput{TemplateBody: ok, StackPolicyBody: "{}"}, "ValidationError", "Error validating stack policy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				a.create("there", ok)
				a.objects["b/large"] = ok + strings.Repeat("#", 1_000_001-len(ok))
				in := test.in
				if in.StackName == "" {
					in.StackName = "s"
				}
				_, err := a.CreateStack(a.ctx, a.admin, &in)
				a.requireRefused(err, test.code, test.want)
				require.Len(t, a.Stacks(), 1, "no part of it remains")
			})
		})
	}
}

func TestOperationsOnNothing(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		const want = "Stack with id nothing does not exist"
		_, err := a.DescribeStacks(a.ctx, a.admin, &StackPageInput{StackName: "nothing"})
		a.requireRefused(err, "ValidationError", want)
		_, err = a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "nothing"})
		a.requireRefused(err, "ValidationError", want)
		_, err = a.UpdateTerminationProtection(a.ctx, a.admin, &UpdateTerminationProtectionInput{StackName: "nothing"})
		a.requireRefused(err, "ValidationError", want)
		_, err = a.DescribeStackEvents(a.ctx, a.admin, &StackPageInput{StackName: "nothing"})
		a.requireRefused(err, "ValidationError", "Stack [nothing] does not exist")
		_, err = a.DeleteStack(a.ctx, a.admin, &DeleteStackInput{StackName: "nothing"})
		require.NoError(t, err, "what is not there is deleted")
	})
}

func TestClientRequestTokensMarkRetries(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		create := &CreateStackInput{StackName: "s", TemplateBody: things(`A: {Size: 1}`), ClientRequestToken: "t1"}
		first, err := a.CreateStack(a.ctx, a.admin, create)
		require.NoError(t, err)
		again, err := a.CreateStack(a.ctx, a.admin, create)
		require.NoError(t, err)
		require.Equal(t, first, again)
		a.wait("s")
		update := &UpdateStackInput{StackName: "s", TemplateBody: things(`A: {Size: 2}`), ClientRequestToken: "t1"}
		_, err = a.UpdateStack(a.ctx, a.admin, update)
		a.requireRefused(err, "TokenAlreadyExistsException", "The client request token t1 has already been used for this stack.")
		update.ClientRequestToken = "t2"
		for range 3 {
			require.Equal(t, updateComplete, a.updateWith(update).StackStatus)
		}
		require.Equal(t, []string{"create A", "update A"}, a.shelf.order())
		out, err := a.DescribeStackEvents(a.ctx, a.admin, &StackPageInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, "t2", out.StackEvents[0].ClientRequestToken)
		require.Equal(t, "t1", last(out.StackEvents).ClientRequestToken)
	})
}

func TestTerminationProtectionForbidsDeletion(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.createWith(&CreateStackInput{StackName: "s", TemplateBody: things(`A: {}`), EnableTerminationProtection: true})
		_, err := a.DeleteStack(a.ctx, a.admin, &DeleteStackInput{StackName: "s"})
		a.requireRefused(err, "ValidationError", "Stack [s] cannot be deleted while TerminationProtection is enabled")
		_, err = a.UpdateTerminationProtection(a.ctx, a.admin, &UpdateTerminationProtectionInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, deleteComplete, a.delete(&DeleteStackInput{StackName: "s"}).StackStatus)
	})
}

func TestStackPoliciesProtectResources(t *testing.T) {
	const allow = `{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}`
	for name, test := range map[string]struct {
		policy, body, during string
		want                 string
	}{
		"no statement allows": {
			policy: `{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "LogicalResourceId/B"}`,
			body:   `A: {Name: any1, Size: 2}`,
			want:   "Action denied by stack policy: no statement allows [Update:Modify] for resource [LogicalResourceId/A]",
		},
		"replacing is denied": {
			policy: allow +
				`, {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*", "Resource": "LogicalResourceId/A*"}`,
			body: `A: {Name: any2, Size: 1}`, want: "[Update:Replace]",
		},
		"replacing is denied by type": {
			policy: allow +
				`, {"Effect": "Deny", "Action": "Update:Replace", "Principal": "*", "Resource": "*",
					"Condition": {"StringLike": {"ResourceType": ["AWS::Test::*"]}}}`,
			body: `A: {Name: any2, Size: 1}`, want: "[Update:Replace]",
		},
		"changing is not": {
			policy: allow + `, {"Effect": "Deny", "Action": "Update:Replace", "Principal": "*", "Resource": "*"}`, body: `A: {Name: any1, Size: 2}`,
		},
		"a policy during the update": {
			policy: `{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "*"}`, during: allow, body: `A: {Name: any2, Size: 2}`,
		},
		"removing is denied": {
			policy: allow + `, {"Effect": "Deny", "Action": "Update:Delete", "Principal": "*", "Resource": "LogicalResourceId/A"}`, body: `B: {}`,
			want: "[Update:Delete]",
		},
		"NotResource spares a resource": {
			policy: allow + `, {"Effect": "Deny", "NotAction": "Update:Modify", "Principal": "*", "NotResource": "LogicalResourceId/A"}`,
			body:   `A: {Name: any2, Size: 1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				wrap := func(s string) string { return `{"Statement": [` + s + `]}` }
				a.createWith(&CreateStackInput{StackName: "s", TemplateBody: things(`A: {Name: any1, Size: 1}`), StackPolicyBody: wrap(test.policy)})
				in := &UpdateStackInput{StackName: "s", TemplateBody: things(test.body)}
				if test.during != "" {
					in.StackPolicyDuringUpdateBody = wrap(test.during)
				}
				st := a.updateWith(in)
				if test.want == "" {
					require.Equal(t, updateComplete, st.StackStatus)
					return
				}
				require.Equal(t, updateRollbackComplete, st.StackStatus)
				require.Contains(t, a.reason("s", "A", updateFailed), test.want)
				require.Len(t, a.shelf.ids(), 1)
			})
		})
	}
}

func TestStackPoliciesThatAreNone(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":           "x",
		"no statement":      `{"Statement": []}`,
		"an unknown member": `{"Statement": [], "X": 1}`,
		"an unknown effect": `{"Statement": [{"Effect": "May", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}`,
		"an unknown action": `{"Statement": [{"Effect": "Deny", "Action": "Delete:*", "Principal": "*", "Resource": "*"}]}`,
		"another principal": `{"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "me", "Resource": "*"}]}`,
		"an unknown condition": `{"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "*",
			"Condition": {"StringEquals": {"aws:x": "y"}}}]}`,
		"no resource": `{"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "*"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePolicy(body)
			require.ErrorContains(t, err, "Error validating stack policy")
		})
	}
}

func TestExportsTieStacksTogether(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		exporting := func(size string) string {
			return things(`A: {Name: any`+size+`}`) + "Outputs: {Id: {Value: !Ref A, Export: {Name: !Sub '${AWS::StackName}-id'}}}\n"
		}
		a.create("network", exporting("1"))
		a.create("user", things(`B: {Needs: !ImportValue network-id}`))
		require.Equal(t, a.physicalID("network", "A"), a.shelf.requests["B"].Properties["Needs"])
		imports, err := a.ListImports(a.ctx, a.admin, &ListImportsInput{ExportName: "network-id"})
		require.NoError(t, err)
		require.Equal(t, []string{"user"}, imports.Imports)

		st := a.delete(&DeleteStackInput{StackName: "network"})
		require.Equal(t, deleteFailed, st.StackStatus)
		require.Equal(t, "Export network-id cannot be deleted as it is in use by user", st.StackStatusReason)
		a.delete(&DeleteStackInput{StackName: "user"})
		require.Equal(t, deleteComplete, a.delete(&DeleteStackInput{StackName: "network"}).StackStatus)

		a.create("network", exporting("1"))
		a.create("user", things(`B: {Needs: !ImportValue network-id}`))
		st = a.update("network", exporting("2"))
		require.Equal(t, updateRollbackComplete, st.StackStatus)
		require.Contains(t, a.reason("network", "network", updateRollbackInProgress),
			"Export network-id cannot be updated as it is in use by user")
		st = a.create("other", strings.Replace(exporting("3"), "${AWS::StackName}-id", "network-id", 1))
		require.Equal(t, rollbackComplete, st.StackStatus)
		require.Contains(t, a.reason("other", "other", rollbackInProgress), "Export with name network-id is already exported by stack network")
	})
}

func TestTagsReachResourcesAndTheTaggingAPI(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		st := a.createWith(&CreateStackInput{StackName: "s", TemplateBody: things(`A: {}`), Tags: []Tag{{"team", "x"}}})
		require.Equal(t, map[string]string{
			"team": "x", "aws:cloudformation:stack-name": "s", "aws:cloudformation:stack-id": st.StackId, "aws:cloudformation:logical-id": "A",
		}, a.shelf.requests["A"].Tags)
		require.Equal(t, []tagging.Tagged{{ARN: st.StackId, Tags: map[string]string{"team": "x"}}}, a.Tagged(a.ctx))
		st = a.updateWith(&UpdateStackInput{StackName: "s", UsePreviousTemplate: true, Tags: []Tag{{"team", "y"}}})
		require.Equal(t, updateComplete, st.StackStatus)
		require.Equal(t, "y", a.shelf.requests["A"].Tags["team"])
		st = a.update("s", things(`A: {Size: 2}`))
		require.Equal(t, []Tag{{"team", "y"}}, st.Tags, "tags stay unless the request has some")
	})
}

func TestSecretParametersAreNotShown(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		body := "Parameters: {P: {Type: String, NoEcho: true}, Q: {Type: String, Default: q}}\n" + things(`A: {Size: !Ref P}`)
		st := a.createWith(&CreateStackInput{
			StackName: "s", TemplateBody: body, Parameters: []Parameter{{ParameterKey: "P", ParameterValue: "secret"}},
		})
		require.Equal(t, []Parameter{{ParameterKey: "P", ParameterValue: "****"}, {ParameterKey: "Q", ParameterValue: "q"}}, st.Parameters)
		st = a.updateWith(&UpdateStackInput{
			StackName: "s", UsePreviousTemplate: true, Tags: []Tag{{"a", "b"}},
			Parameters: []Parameter{{ParameterKey: "P", UsePreviousValue: true}, {ParameterKey: "Q", ParameterValue: "r"}},
		})
		require.Equal(t, updateComplete, st.StackStatus)
		require.Equal(t, "secret", a.shelf.requests["A"].Properties["Size"])
		require.Equal(t, "r", st.Parameters[1].ParameterValue)
	})
}

func TestTemplatesAreReadFromS3WithTheCallersPermission(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.objects["b.c/k/t.yaml"] = things(`A: {}`)
		for name, location := range map[string]string{
			"hosted": "https://b.c.s3.eu-west-1.amazonaws.com/k/t.yaml", "path": "https://s3.eu-west-1.amazonaws.com/b.c/k/t.yaml",
			"global": "https://b.c.s3.amazonaws.com/k/t.yaml", "local": "http://127.0.0.1:4566/b.c/k/t.yaml",
		} {
			require.Equal(t, createComplete, a.createWith(&CreateStackInput{StackName: name, TemplateURL: location}).StackStatus)
		}
		limited := a.role("limited", "lambda.amazonaws.com", `{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"}`)
		_, err := a.CreateStack(a.ctx, limited, &CreateStackInput{StackName: "s", TemplateURL: "https://b.c.s3.eu-west-1.amazonaws.com/k/t.yaml"})
		a.requireRefused(err, "ValidationError", "S3 error: AccessDenied")
	})
}

// role creates a role with one policy and returns a caller with it.
func (a *account) role(name, service, statements string) iam.Caller {
	a.t.Helper()
	r, err := a.roles.CreateRole(iam.Role{Name: name, TrustDocument: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
		"Principal": {"Service": "` + service + `"}, "Action": "sts:AssumeRole"}]}`})
	require.NoError(a.t, err)
	require.NoError(a.t, a.roles.PutRolePolicy(name, "p", `{"Version": "2012-10-17", "Statement": [`+statements+`]}`))
	caller, _, err := a.roles.AssumeRoleAs(a.roles.RoleARN(r), "session", service)
	require.NoError(a.t, err)
	return caller
}

func TestCallersNeedPermission(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.role("service", principal, `{"Effect": "Allow", "Action": "things:*", "Resource": "*"}`)
		const serviceRole = "arn:aws:iam::111122223333:role/service"
		caller := a.role("change", "lambda.amazonaws.com", `
			{"Effect": "Allow", "Action": ["cloudformation:*"], "Resource": "arn:aws:cloudformation:eu-west-1:111122223333:stack/drover-*/*"},
			{"Effect": "Deny", "Action": "cloudformation:CreateStack", "Resource": "*", "Condition": {"Null": {"aws:RequestTag/team": "true"}}},
			{"Effect": "Deny", "Action": "cloudformation:ExecuteChangeSet", "Resource": "*",
				"Condition": {"StringEquals": {"cloudformation:ChangeSetName": "other"}}},
			{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "`+serviceRole+`"}`)
		in := &CreateStackInput{StackName: "other", TemplateBody: things(`A: {}`), Tags: []Tag{{"team", "x"}}}
		_, err := a.CreateStack(a.ctx, caller, in)
		a.requireRefused(err, "AccessDenied",
			"cloudformation:CreateStack on resource: arn:aws:cloudformation:eu-west-1:111122223333:stack/other/*")
		in.StackName, in.Tags = "drover-s", nil
		_, err = a.CreateStack(a.ctx, caller, in)
		a.requireRefused(err, "AccessDenied", "explicit deny")
		in.Tags, in.RoleARN = []Tag{{"team", "x"}}, "arn:aws:iam::111122223333:role/admin"
		_, err = a.CreateStack(a.ctx, caller, in)
		a.requireRefused(err, "AccessDenied", "iam:PassRole")

		in.RoleARN = ""
		_, err = a.CreateStack(a.ctx, caller, in)
		require.NoError(t, err)
		require.Equal(t, rollbackFailed, a.wait("drover-s").StackStatus, "without a role, resources are made as the caller, who may not")
		require.Contains(t, a.reason("drover-s", "A", createFailed), "HandlerErrorCode: AccessDenied")

		in.StackName, in.RoleARN = "drover-t", serviceRole
		_, err = a.CreateStack(a.ctx, caller, in)
		require.NoError(t, err)
		st := a.wait("drover-t")
		require.Equal(t, createComplete, st.StackStatus)
		require.Equal(t, serviceRole, st.RoleARN)
		_, err = a.CreateChangeSet(a.ctx, caller,
			&CreateChangeSetInput{StackName: "drover-t", ChangeSetName: "c", TemplateBody: things(`A: {Size: 2}`)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = a.ExecuteChangeSet(a.ctx, caller, &ExecuteChangeSetInput{StackName: "drover-t", ChangeSetName: "c"})
		require.NoError(t, err)
		require.Equal(t, updateComplete, a.wait("drover-t").StackStatus)
		_, err = a.DeleteStack(a.ctx, caller, &DeleteStackInput{StackName: "drover-t"})
		require.NoError(t, err)
		require.Equal(t, deleteComplete, a.wait(st.StackId).StackStatus, "the stack remembers its role")

		_, err = a.ListStacks(a.ctx, caller, &ListStacksInput{})
		a.requireRefused(err, "AccessDenied", "cloudformation:ListStacks on resource: *")
		_, err = a.ExecuteChangeSet(a.ctx, caller, &ExecuteChangeSetInput{StackName: "drover-t", ChangeSetName: "other"})
		a.requireRefused(err, "AccessDenied", "explicit deny")
	})
}

func TestCloudFormationCallsInTheCallersName(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		caller := a.role("user", "lambda.amazonaws.com", `
			{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"},
			{"Effect": "Allow", "Action": "things:*", "Resource": "*",
				"Condition": {"ForAnyValue:StringEquals": {"aws:CalledVia": "cloudformation.amazonaws.com"}}}`)
		_, err := a.CreateStack(a.ctx, caller, &CreateStackInput{StackName: "s", TemplateBody: things(`A: {}`)})
		require.NoError(t, err)
		require.Equal(t, createComplete, a.wait("s").StackStatus)
	})
}

func TestReadingOperations(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		body := "Description: about\nParameters: {P: {Type: String, Default: x, AllowedValues: [x, y]}}\n" +
			things(`A: {}`) + "    Metadata: {k: v}\n"
		a.create("s", body)
		a.create("deleted", things(`A: {}`))
		a.delete(&DeleteStackInput{StackName: "deleted"})
		list, err := a.ListStacks(a.ctx, a.admin, &ListStacksInput{})
		require.NoError(t, err)
		require.Len(t, list.StackSummaries, 2)
		list, err = a.ListStacks(a.ctx, a.admin, &ListStacksInput{StackStatusFilter: []string{deleteComplete}})
		require.NoError(t, err)
		require.Equal(t, "deleted", list.StackSummaries[0].StackName)
		all, err := a.DescribeStacks(a.ctx, a.admin, &StackPageInput{})
		require.NoError(t, err)
		require.Len(t, all.Stacks, 1)
		template, err := a.GetTemplate(a.ctx, a.admin, &GetTemplateInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, body, template.TemplateBody)
		summary, err := a.GetTemplateSummary(a.ctx, a.admin, &TemplateInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, []string{thingType}, summary.ResourceTypes)
		require.Equal(t, []string{"x", "y"}, summary.Parameters[0].ParameterConstraints.AllowedValues)
		valid, err := a.ValidateTemplate(a.ctx, a.admin,
			&TemplateInput{TemplateBody: "Resources: {R: {Type: AWS::IAM::Role, Properties: {Name: x}}}"})
		require.NoError(t, err)
		require.Equal(t, []string{"CAPABILITY_IAM"}, valid.Capabilities)
		resources, err := a.ListStackResources(a.ctx, a.admin, &StackPageInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, createComplete, resources.StackResourceSummaries[0].ResourceStatus)
		owner, err := a.DescribeStackResources(a.ctx, a.admin, &DescribeStackResourcesInput{PhysicalResourceId: a.physicalID("s", "A")})
		require.NoError(t, err)
		require.Equal(t, "s", owner.StackResources[0].StackName)
		detail, err := a.DescribeStackResource(a.ctx, a.admin, &DescribeStackResourceInput{StackName: "s", LogicalResourceId: "A"})
		require.NoError(t, err)
		require.JSONEq(t, `{"k": "v"}`, detail.StackResourceDetail.Metadata)
	})
}

func TestEventsComeInPagesThatDoNotShift(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		var many []string
		for i := range 60 {
			many = append(many, "A"+strings.Repeat("x", i)+": {}")
		}
		a.create("s", things(many...))
		first, err := a.DescribeStackEvents(a.ctx, a.admin, &StackPageInput{StackName: "s"})
		require.NoError(t, err)
		require.Len(t, first.StackEvents, 100)
		require.Equal(t, createComplete, first.StackEvents[0].ResourceStatus)
		a.update("s", things(append(many, "B: {}")...))
		second, err := a.DescribeStackEvents(a.ctx, a.admin, &StackPageInput{StackName: "s", NextToken: first.NextToken})
		require.NoError(t, err)
		require.Len(t, second.StackEvents, 60*3+2-100)
		require.Empty(t, second.NextToken)
		_, err = a.DescribeStackEvents(a.ctx, a.admin, &StackPageInput{StackName: "s", NextToken: "x"})
		a.requireRefused(err, "ValidationError", "NextToken")
	})
}
