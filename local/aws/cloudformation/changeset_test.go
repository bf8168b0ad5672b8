package cloudformation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// changes creates a change set and returns its changes: "Modify A False [Properties]".
func (a *account) changes(in *CreateChangeSetInput) *DescribeChangeSetOutput {
	a.t.Helper()
	if in.ChangeSetName == "" {
		in.ChangeSetName = "c"
	}
	out, err := a.CreateChangeSet(a.ctx, a.admin, in)
	require.NoError(a.t, err)
	describe := func() *DescribeChangeSetOutput {
		described, err := a.DescribeChangeSet(a.ctx, a.admin, &DescribeChangeSetInput{ChangeSetName: out.Id, IncludePropertyValues: false})
		require.NoError(a.t, err)
		return described
	}
	require.Contains(a.t, []string{createPending, createInProgress}, describe().Status, "it is made in the background")
	time.Sleep(time.Minute)
	return describe()
}

func summary(set *DescribeChangeSetOutput) []string {
	var lines []string
	for _, change := range set.Changes {
		c := change.ResourceChange
		line := strings.TrimRight(c.Action+" "+c.LogicalResourceId+" "+c.Replacement, " ")
		if len(c.Scope) > 0 {
			line += " [" + strings.Join(c.Scope, " ") + "]"
		}
		if c.PolicyAction != "" {
			line += " " + c.PolicyAction
		}
		for _, d := range c.Details {
			line += strings.TrimRight("; "+strings.TrimLeft(d.Target.Name+" ", " ")+d.Evaluation+" "+d.ChangeSource+" "+d.CausingEntity, " ")
		}
		lines = append(lines, line)
	}
	return lines
}

func TestChangeSetsSayWhatWouldChange(t *testing.T) {
	const before = "Parameters: {Size: {Type: String, Default: 1}, Name: {Type: String, Default: any1}}\n"
	resources := things(`A: {Name: !Ref Name}`, `B: {Size: !Ref Size}`, `ByRef: {Home: !Ref A}`, `ByRefInPlace: {Needs: !Ref A}`,
		`ByAttribute: {Home: !GetAtt B.Arn}`, `ByAttributeInPlace: {Needs: !GetAtt B.Version}`, `ById: {Home: !Ref B}`)
	for name, test := range map[string]struct {
		in   CreateChangeSetInput
		want []string
	}{
		"a property in place, and all that reads attributes of the resource": {
			CreateChangeSetInput{TemplateBody: before + strings.Replace(resources, "Size: !Ref Size", "Size: 2", 1)},
			[]string{
				"Modify B False [Properties]; Size Static DirectModification",
				"Modify ByAttribute Conditional [Properties] ReplaceAndDelete; Home Dynamic ResourceAttribute B.Arn",
				"Modify ByAttributeInPlace False [Properties]; Needs Dynamic ResourceAttribute B.Version",
			},
		},
		"a parameter": {
			CreateChangeSetInput{UsePreviousTemplate: true, Parameters: []Parameter{{ParameterKey: "Name", ParameterValue: "any2"}}},
			[]string{
				"Modify A True [Properties] ReplaceAndDelete; Name Static ParameterReference Name; Name Dynamic DirectModification",
				"Modify ByRef True [Properties] ReplaceAndDelete; Home Static ResourceReference A",
				"Modify ByRefInPlace False [Properties]; Needs Static ResourceReference A",
			},
		},
		"tags of the stack": {
			CreateChangeSetInput{UsePreviousTemplate: true, Tags: []Tag{{"spec", "2"}}},
			[]string{
				"Modify A False [Tags]; Static DirectModification",
				"Modify B False [Tags]; Static DirectModification",
				"Modify ByAttribute Conditional [Properties Tags] ReplaceAndDelete; Home Dynamic ResourceAttribute B.Arn; Static DirectModification",
				"Modify ByAttributeInPlace False [Properties Tags]; Needs Dynamic ResourceAttribute B.Version; Static DirectModification",
				"Modify ById False [Tags]; Static DirectModification",
				"Modify ByRef False [Tags]; Static DirectModification",
				"Modify ByRefInPlace False [Tags]; Static DirectModification",
			},
		},
		"an addition and a removal": {
			CreateChangeSetInput{TemplateBody: before + strings.Replace(resources, "ById", "New", 1)},
			[]string{"Remove ById Delete", "Add New"},
		},
		"policies next to a change": {
			CreateChangeSetInput{
				TemplateBody: before + resources[:len(resources)-1] + "\n    DeletionPolicy: Retain\n    UpdatePolicy: {x: 1}\n    Metadata: {m: 1}\n",
			},
			[]string{"Modify ById False [Metadata UpdatePolicy DeletionPolicy]; Static DirectModification; Static DirectModification; Static " +
				"DirectModification"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				a.create("s", before+resources)
				calls := len(a.shelf.order())
				in := test.in
				in.StackName = "s"
				set := a.changes(&in)
				require.Equal(t, createComplete, set.Status, set.StatusReason)
				require.Equal(t, available, set.ExecutionStatus)
				require.Empty(t, cmp.Diff(test.want, summary(set)))
				require.Len(t, a.shelf.order(), calls, "making it touches nothing")
				require.Equal(t, createComplete, a.describeNow("s").StackStatus)
			})
		})
	}
}

func TestChangeSetWithoutChangesFails(t *testing.T) {
	body := "Parameters: {P: {Type: String, Default: x}}\nDescription: a\n" + things(`A: {Size: 1}`)
	for name, in := range map[string]CreateChangeSetInput{
		"the same template":          {TemplateBody: body},
		"another description":        {TemplateBody: strings.Replace(body, "Description: a", "Description: b", 1)},
		"an undeclared parameter":    {UsePreviousTemplate: true, Parameters: []Parameter{{ParameterKey: "P", ParameterValue: "y"}}},
		"a dependency":               {TemplateBody: body + "    DependsOn: []\n"},
		"policies alone":             {TemplateBody: body + "    DeletionPolicy: Retain\n"},
		"the same value differently": {TemplateBody: strings.Replace(body, "Size: 1", "Size: !Sub '1'", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				a.create("s", body)
				in := in
				in.StackName = "s"
				set := a.changes(&in)
				require.Equal(t, failed, set.Status)
				require.Equal(t, nothingToChange, set.StatusReason)
				require.Equal(t, unavailable, set.ExecutionStatus)
				_, err := a.ExecuteChangeSet(a.ctx, a.admin, &ExecuteChangeSetInput{ChangeSetName: set.ChangeSetId})
				a.requireRefused(err, "InvalidChangeSetStatus", "cannot be executed in its current status of [FAILED]")
			})
		})
	}
}

func TestOutputsAndTagsAloneAreChanges(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		body := things(`A: {Size: 1}`)
		a.create("s", body)
		set := a.changes(&CreateChangeSetInput{StackName: "s", TemplateBody: body + "Outputs: {Id: {Value: !Ref A}}\n"})
		require.Equal(t, createComplete, set.Status)
		require.Empty(t, set.Changes)
		_, err := a.ExecuteChangeSet(a.ctx, a.admin, &ExecuteChangeSetInput{ChangeSetName: set.ChangeSetId})
		require.NoError(t, err)
		require.Equal(t, []Output{{OutputKey: "Id", OutputValue: a.physicalID("s", "A")}}, a.wait("s").Outputs)
	})
}

func TestChangeSetCreatesAStack(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		in := &CreateChangeSetInput{
			StackName: "s", ChangeSetName: "one", ChangeSetType: "CREATE", TemplateBody: things(`A: {Size: 1}`), ClientToken: "t1",
			Tags: []Tag{{"a", "b"}}, Description: "why",
		}
		set := a.changes(in)
		require.Equal(t, []string{"Add A"}, summary(set))
		require.Equal(t, reviewInProgress, a.describeNow("s").StackStatus)
		again, err := a.CreateChangeSet(a.ctx, a.admin, in)
		require.NoError(t, err, "a retry finds the same change set")
		require.Equal(t, set.ChangeSetId, again.Id)
		other := *in
		other.ClientToken = "t2"
		_, err = a.CreateChangeSet(a.ctx, a.admin, &other)
		a.requireRefused(err, "AlreadyExistsException", "one")
		other.ChangeSetName = "two"
		a.changes(&other)
		list, err := a.ListChangeSets(a.ctx, a.admin, &StackPageInput{StackName: "s"})
		require.NoError(t, err)
		require.Len(t, list.Summaries, 2)

		execute := &ExecuteChangeSetInput{ChangeSetName: "one", StackName: "s", ClientRequestToken: "run-1"}
		_, err = a.ExecuteChangeSet(a.ctx, a.admin, execute)
		require.NoError(t, err)
		_, err = a.ExecuteChangeSet(a.ctx, a.admin, execute)
		require.NoError(t, err, "a retry does nothing more")
		st := a.wait("s")
		require.Equal(t, createComplete, st.StackStatus)
		require.Equal(t, []Tag{{"a", "b"}}, st.Tags)
		require.Equal(t, set.ChangeSetId, st.ChangeSetId)
		require.Equal(t, []string{"create A"}, a.shelf.order())
		_, err = a.DescribeChangeSet(a.ctx, a.admin, &DescribeChangeSetInput{ChangeSetName: "two", StackName: "s"})
		a.requireRefused(err, "ChangeSetNotFound", "ChangeSet [two] does not exist")
		byARN, err := a.DescribeChangeSet(a.ctx, a.admin, &DescribeChangeSetInput{ChangeSetName: set.ChangeSetId})
		require.NoError(t, err)
		require.Equal(t, executeComplete, byARN.ExecutionStatus)
		_, err = a.CreateChangeSet(a.ctx, a.admin, in)
		a.requireRefused(err, "ValidationError", "Stack [s] already exists and cannot be created again with the changeSet [one].")
	})
}

func TestChangeSetRequestsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		in         CreateChangeSetInput
		code, want string
	}{
		"an update of nothing": {CreateChangeSetInput{StackName: "x"}, "ValidationError", "Stack [x] does not exist"},
		"an import":            {CreateChangeSetInput{StackName: "s", ChangeSetType: "IMPORT"}, "UnsupportedByLocalAccount", "IMPORT"},
		"an unknown type":      {CreateChangeSetInput{StackName: "s", ChangeSetType: "X"}, "ValidationError", "enum value set"},
		"deleting a failed update": {
			CreateChangeSetInput{StackName: "s", OnStackFailure: "DELETE"}, "ValidationError", "OnStackFailure DELETE",
		},
		"no template": {
			CreateChangeSetInput{StackName: "s"}, "ValidationError", "Either Template URL or Template Body must be specified",
		},
		"an odd name": {CreateChangeSetInput{StackName: "s", ChangeSetName: "1a"}, "ValidationError", "changeSetName"},
		"another type": {
			CreateChangeSetInput{
				StackName: "s", TemplateBody: "Resources: {A: {Type: AWS::Test::Nope}}",
			}, "ValidationError", "Unrecognized resource types: [AWS::Test::Nope]",
		},
		"an absent previous value": {
			CreateChangeSetInput{StackName: "s", UsePreviousTemplate: true, Parameters: []Parameter{{ParameterKey: "P", UsePreviousValue: true}}},
			"ValidationError", "usePreviousValue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				a.create("s", things(`A: {}`))
				in := test.in
				if in.ChangeSetName == "" {
					in.ChangeSetName = "c"
				}
				_, err := a.CreateChangeSet(a.ctx, a.admin, &in)
				a.requireRefused(err, test.code, test.want)
				require.Len(t, a.Stacks(), 1)
			})
		})
	}
}

func TestChangeOfTypeFailsTheChangeSet(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {}`))
		set := a.changes(&CreateChangeSetInput{StackName: "s", TemplateBody: "Resources: {A: {Type: AWS::Test::Other}}"})
		require.Equal(t, failed, set.Status)
		require.Contains(t, set.StatusReason, "Update of resource type is not permitted. The new template modifies resource type of the "+
			"following resources: [A]")
	})
}

func TestPropertyValuesAreShownWhenAsked(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Size: 1}`, `B: {Needs: !GetAtt A.Version}`))
		a.changes(&CreateChangeSetInput{
			StackName: "s", ChangeSetName: "c", TemplateBody: things(`A: {Size: 2}`, `B: {Needs: !GetAtt A.Version}`),
		})
		set, err := a.DescribeChangeSet(a.ctx, a.admin, &DescribeChangeSetInput{ChangeSetName: "c", StackName: "s", IncludePropertyValues: true})
		require.NoError(t, err)
		require.Equal(t, ResourceTargetDefinition{
			Attribute: "Properties", Name: "Size", RequiresRecreation: "Never", Path: "/Properties/Size", BeforeValue: "1", AfterValue: "2",
			AttributeChangeType: "Modify",
		}, set.Changes[0].ResourceChange.Details[0].Target)
		require.Equal(t, `{"Properties":{"Size":1}}`, set.Changes[0].ResourceChange.BeforeContext)
		require.Equal(t, knownAfterApply, set.Changes[1].ResourceChange.Details[0].Target.AfterValue)
	})
}

func TestChangeSetOfAnOlderStack(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Size: 1}`))
		set := a.changes(&CreateChangeSetInput{StackName: "s", TemplateBody: things(`A: {Size: 2}`)})
		a.update("s", things(`A: {Size: 3}`))
		_, err := a.ExecuteChangeSet(a.ctx, a.admin, &ExecuteChangeSetInput{ChangeSetName: set.ChangeSetId})
		a.requireRefused(err, "ChangeSetNotFound", set.ChangeSetId)
	})
}

func TestRepeatedDeletionOfAChangeSet(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Size: 1}`))
		in := &ChangeSetInput{ChangeSetName: "c", StackName: "s"}
		_, err := a.CreateChangeSet(a.ctx, a.admin, &CreateChangeSetInput{
			StackName: "s", ChangeSetName: "c", TemplateBody: things(`A: {Size: 2}`),
		})
		require.NoError(t, err)
		_, err = a.DeleteChangeSet(a.ctx, a.admin, in)
		a.requireRefused(err, "InvalidChangeSetStatus", "cannot be deleted in its current status of")
		time.Sleep(time.Minute)
		for range 2 {
			_, err = a.DeleteChangeSet(a.ctx, a.admin, in)
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Equal(t, createComplete, a.describeNow("s").StackStatus)
	})
}
