#!/bin/bash
# Signs dist/Forespeak.app, puts it into a disk image and has Apple notarise that: packaging/macos/make_dmg.sh VERSION
#
# SIGNING_IDENTITY   "Developer ID Application: ..." in the keychain; without it the app is signed for this Mac alone
#                    and nothing is notarised
# NOTARY_KEY, NOTARY_KEY_ID, NOTARY_ISSUER   App Store Connect API key: the .p8 file, its id, the issuer's id
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version="${1:?give the version}"
app="dist/Forespeak.app"
image="dist/Forespeak-$version-$(uname -m).dmg"
identity="${SIGNING_IDENTITY:-}"
entitlements="packaging/macos/entitlements.plist"

if [ -n "$identity" ]; then
    # From the inside out, as Apple asks: --deep would give the program's rights to every library.
    find "$app/Contents/Frameworks" "$app/Contents/Resources" -type f \
        \( -name '*.dylib' -o -name '*.so' \) -print0 |
        xargs -0 -n 20 codesign --force --options runtime --timestamp --sign "$identity"
    find "$app/Contents/Frameworks" -type d -name '*.framework' -prune -print0 |
        xargs -0 -n 1 codesign --force --options runtime --timestamp --sign "$identity"
    codesign --force --options runtime --timestamp --entitlements "$entitlements" --sign "$identity" "$app"
else
    echo "SIGNING_IDENTITY is not set: the app will run on other Macs only after its quarantine is lifted."
    codesign --force --deep --sign - "$app"
fi
codesign --verify --deep --strict --verbose=1 "$app"

staging="$(mktemp -d)"
trap 'rm -rf "$staging"' EXIT
# ditto keeps the links and the signatures' attributes.
ditto "$app" "$staging/Forespeak.app"
ln -s /Applications "$staging/Applications"
# It mounts the image to fill it, and fails where the system's own scanner is looking at it meanwhile.
for attempt in 1 2 3 4 5; do
    if hdiutil create -volname Forespeak -srcfolder "$staging" -format UDZO -ov "$image"; then break; fi
    [ "$attempt" -lt 5 ] || exit 1
    sleep 10
done

if [ -n "$identity" ]; then
    codesign --force --timestamp --sign "$identity" "$image"
    if [ -n "${NOTARY_KEY:-}" ]; then
        xcrun notarytool submit "$image" --wait \
            --key "$NOTARY_KEY" --key-id "${NOTARY_KEY_ID:?}" --issuer "${NOTARY_ISSUER:?}"
        # Where Apple refused, there is no ticket: this fails then.
        xcrun stapler staple "$image"
        xcrun stapler validate "$image"
    else
        echo "NOTARY_KEY is not set: the image is signed, but not notarised."
    fi
fi
echo "$image"
