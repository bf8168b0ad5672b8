package ec2

// KMS keys of volumes.

import (
	"errors"

	"github.com/drover-run/drover/local/engine/wire"
)

// refusedKey returns the reason with which EC2 terminates an instance, because its volumes cannot be encrypted with their keys. It is "" if
// they can. EC2 accepts the launch, and terminates the pending instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html#troubleshooting-launch-internal
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html
func (s *Service) refusedKey(r LaunchRequest, devices []BlockDevice) string {
	if s.config.Keys == nil || s.config.Roles == nil || r.RoleARN == "" {
		return ""
	}
	for _, b := range devices {
		if b.Ebs == nil || b.Ebs.KmsKeyId == "" {
			continue
		}
		caller, _, err := s.config.Roles.AssumeRoleAs(r.RoleARN, "volumes", r.Principal)
		if err == nil {
			err = s.config.Keys.AuthorizeVolume(caller, b.Ebs.KmsKeyId)
		}
		var known *wire.Error
		switch {
		case err == nil:
		case errors.As(err, &known) && known.Code == "DisabledException":
			return "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
		default:
			return "Client.InternalError: Client error on launch"
		}
	}
	return ""
}

// checkKeys rejects a key of a volume that is not encrypted.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html
func checkKeys(b BlockDevice) error {
	if b.Ebs.KmsKeyId != "" && (b.Ebs.Encrypted == nil || !*b.Ebs.Encrypted) {
		return fail("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
	}
	return nil
}
