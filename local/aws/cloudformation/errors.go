package cloudformation

import (
	"errors"
	"strings"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/engine/wire"
)

// The errors of the API, in CloudFormation's wording.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/CommonErrors.html

func invalid(format string, args ...any) error {
	return wire.Errorf("ValidationError", format, args...)
}

func insufficientCapabilities(needed string) error {
	return wire.Errorf("InsufficientCapabilitiesException", "Requires capabilities : [%s]", needed)
}

func alreadyExists(format string, args ...any) error {
	return wire.Errorf("AlreadyExistsException", format, args...)
}

func unsupportedError(what string) error { return wire.Unsupported("cloudformation", what) }

// templateError converts an error of package template to an error of the API. Other errors stay.
func templateError(err error) error {
	var refused *template.Error
	if errors.As(err, &refused) {
		if strings.HasPrefix(refused.Message, "Template ") || strings.HasPrefix(refused.Message, "Parameter") {
			return invalid("%s", refused.Message)
		}
		return invalid("Template validation error: %s", refused.Message)
	}
	var lacking *template.UnsupportedError
	if errors.As(err, &lacking) {
		return unsupportedError(lacking.What)
	}
	return err
}
