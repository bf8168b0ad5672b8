package ec2

// Snapshots of volumes, with which disks of instances may begin.

// snapshot of a volume.
type snapshot struct {
	object
	size      int
	encrypted bool
}

// AddSnapshot adds a completed snapshot to the account.
func (s *Service) AddSnapshot(sizeGiB int, encrypted bool) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &snapshot{object: s.newObject("snapshot", "snap", nil), size: sizeGiB, encrypted: encrypted}
	s.snapshots.put(snap.id, snap)
	return snap.id
}

// checkSnapshots returns an error if a disk cannot begin with its snapshot. The caller holds the lock.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func (s *Service) checkSnapshots(devices []BlockDevice) error {
	for _, b := range devices {
		if b.Ebs == nil || b.Ebs.SnapshotId == "" {
			continue
		}
		snap, ok := s.snapshots.get(b.Ebs.SnapshotId)
		if !ok {
			return fail("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", b.Ebs.SnapshotId)
		}
		if size := b.Ebs.VolumeSize; size != nil && *size < snap.size {
			return fail("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', expect size>= %dGB", *size, snap.id,
				snap.size)
		}
	}
	return nil
}
