"""`python -m becalm.dropin`, which is `becalm-helm`."""

import sys

from becalm.dropin.main import main

sys.exit(main())
