package status

// ToCome says whether a phase of an upgrade is one before it begins, if it does.
func ToCome(phase string) bool {
	return phase == UpgradeScheduled || phase == UpgradeDelayed || phase == UpgradeMissed
}
