package account

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/drover-run/drover/shared/names"
)

// Stacks are drover's own stacks, in the order of their creation.
var Stacks = []string{names.BaseStack, names.CellStack}

// assets is the part of a CDK asset manifest about files. https://docs.aws.amazon.com/cdk/v2/guide/cloud-assembly.html
type assets struct {
	Files map[string]struct {
		Source struct {
			Path      string `json:"path"`
			Packaging string `json:"packaging"`
		} `json:"source"`
		Destinations map[string]struct {
			BucketName string `json:"bucketName"`
			ObjectKey  string `json:"objectKey"`
		} `json:"destinations"`
	} `json:"files"`
}

// Deploy does what the cdk command does. It publishes the assets of a cloud assembly and creates or updates drover's
// stacks, through the account's own endpoint, as the administrator.
func (a *Account) Deploy(ctx context.Context, assembly string) error {
	for _, stack := range Stacks {
		body, err := os.ReadFile(filepath.Join(assembly, stack+".assets.json"))
		if err != nil {
			return fmt.Errorf("reading the cloud assembly (make synth-local writes it): %w", err)
		}
		var manifest assets
		if err := json.Unmarshal(body, &manifest); err != nil {
			return fmt.Errorf("reading %s.assets.json: %w", stack, err)
		}
		template, err := a.publish(ctx, assembly, stack, manifest)
		if err != nil {
			return err
		}
		if err := a.createStack(ctx, stack, template); err != nil {
			return err
		}
	}
	return nil
}

// publish uploads the assets of a stack and returns the URL of its template, which is one of them.
func (a *Account) publish(ctx context.Context, assembly, stack string, manifest assets) (template string, err error) {
	client := awss3.NewFromConfig(a.Config(), func(o *awss3.Options) { o.UsePathStyle = true })
	expand := strings.NewReplacer("${AWS::AccountId}", a.id, "${AWS::Region}", a.region, "${AWS::Partition}", "aws")
	var made []string
	for _, file := range manifest.Files {
		content, err := pack(filepath.Join(assembly, file.Source.Path), file.Source.Packaging)
		if err != nil {
			return "", err
		}
		for _, destination := range file.Destinations {
			bucket, key := expand.Replace(destination.BucketName), destination.ObjectKey
			if !slices.Contains(made, bucket) {
				_, err := client.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &bucket})
				if err != nil && !strings.Contains(err.Error(), "BucketAlreadyOwnedByYou") {
					return "", fmt.Errorf("creating the bucket of assets: %w", err)
				}
				made = append(made, bucket)
			}
			_, err := client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
			if err != nil {
				return "", fmt.Errorf("publish %s: %w", file.Source.Path, err)
			}
			if file.Source.Path == stack+".template.json" {
				template = fmt.Sprintf("https://%s.s3.%s.amazonaws.com/%s", bucket, a.region, key)
			}
		}
	}
	if template == "" {
		return "", fmt.Errorf("the cloud assembly %s holds no template of stack %s", assembly, stack)
	}
	return template, nil
}

// pack reads an asset: a file unchanged, or a directory as a zip. The zip is not compressed, because it stays on this
// machine.
func pack(path, packaging string) ([]byte, error) {
	if packaging == "file" {
		return os.ReadFile(path)
	}
	if packaging != "zip" {
		return nil, fmt.Errorf("asset %s: packaging %q is neither file nor zip", path, packaging)
	}
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(path, file)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Store}
		header.SetMode(0o755)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(w, content)
		return err
	})
	if err := errors.Join(err, archive.Close()); err != nil {
		return nil, fmt.Errorf("pack asset %s: %w", path, err)
	}
	return buffer.Bytes(), nil
}

// createStack creates or updates one of drover's stacks and waits until the operation ends.
func (a *Account) createStack(ctx context.Context, stack, template string) error {
	client := cloudformation.NewFromConfig(a.Config())
	name, capabilities := &stack, []types.Capability{types.CapabilityCapabilityNamedIam}
	_, err := client.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: name, TemplateURL: &template, Capabilities: capabilities, OnFailure: types.OnFailureDoNothing,
	})
	var exists *types.AlreadyExistsException
	if errors.As(err, &exists) {
		_, err = client.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: name, TemplateURL: &template, Capabilities: capabilities})
		if err != nil && strings.Contains(err.Error(), "No updates are to be performed") {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("deploy drover: %w", err)
	}
	for {
		out, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: name})
		if err != nil {
			return fmt.Errorf("deploy drover: %w", err)
		}
		switch status := out.Stacks[0].StackStatus; {
		case status == types.StackStatusCreateComplete || status == types.StackStatusUpdateComplete:
			return nil
		case !strings.HasSuffix(string(status), "_IN_PROGRESS"):
			return fmt.Errorf("deploy drover: stack %s is %s:\n%s", stack, status, a.whyFailed(ctx, client, stack))
		}
		if err := a.clock.Timer(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// whyFailed lists the failed resources of a stack.
func (a *Account) whyFailed(ctx context.Context, client *cloudformation.Client, stack string) string {
	out, err := client.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &stack})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, event := range slices.Backward(out.StackEvents) {
		if strings.HasSuffix(string(event.ResourceStatus), "_FAILED") {
			lines = append(lines, fmt.Sprintf("%s (%s): %s", aws.ToString(event.LogicalResourceId), aws.ToString(event.ResourceType),
				aws.ToString(event.ResourceStatusReason)))
		}
	}
	return strings.Join(lines, "\n")
}
