package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// markers is the path of the parameters that mark runs. A run writes its marker before it deploys drover, and deletes it when everything is
// removed. So a later run knows that it may remove this deployment, also after a crash.
const markers = "/drover-verify/"

// Marked lists the suffixes of the runs that did not finish their cleanup.
func (t *Target) Marked(ctx context.Context) ([]string, error) {
	var suffixes []string
	pages := ssm.NewGetParametersByPathPaginator(ssm.NewFromConfig(t.cfg), &ssm.GetParametersByPathInput{Path: aws.String(markers)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the markers of runs: %w", err)
		}
		for _, parameter := range page.Parameters {
			suffixes = append(suffixes, strings.TrimPrefix(aws.ToString(parameter.Name), markers))
		}
	}
	return suffixes, nil
}

// mark writes the marker of this run.
func (t *Target) mark(ctx context.Context) error {
	_, err := ssm.NewFromConfig(t.cfg).PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String(markers + t.Suffix), Type: types.ParameterTypeString,
		Value: aws.String("make verify runs or was interrupted: make verify-clean removes what it created"),
	})
	if err != nil {
		return fmt.Errorf("marking this run: %w", err)
	}
	return nil
}

// isMarked reports whether the marker of this run exists: the run may have created resources.
func (t *Target) isMarked(ctx context.Context) (bool, error) {
	_, err := ssm.NewFromConfig(t.cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(markers + t.Suffix)})
	if absent := (*types.ParameterNotFound)(nil); errors.As(err, &absent) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the marker of this run: %w", err)
	}
	return true, nil
}

// unmark deletes the marker of this run.
func (t *Target) unmark(ctx context.Context) error {
	_, err := ssm.NewFromConfig(t.cfg).DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(markers + t.Suffix)})
	if absent := (*types.ParameterNotFound)(nil); err != nil && !errors.As(err, &absent) {
		return fmt.Errorf("deleting the marker of this run: %w", err)
	}
	return nil
}
