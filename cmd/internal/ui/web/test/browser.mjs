// Starts Debian's Chromium, headless. Its own sandbox does not work for root or in most containers; the pages are drover's own.
import { chromium } from 'playwright-core';

export function open() {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
