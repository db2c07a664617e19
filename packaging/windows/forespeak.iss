; Inno Setup 6.3 or newer: ISCC.exe /DAppVersion=0.1.0 packaging\windows\forespeak.iss
; Makes dist\Forespeak-0.1.0-setup.exe of dist\forespeak, the folder that packaging\bundle.py froze.

#ifndef AppVersion
  #error Give the version: /DAppVersion=...
#endif

[Setup]
AppId={{5D0C5C0B-6E0E-4B7C-9C57-2F6E3B0F6A41}
AppName=Forespeak
AppVersion={#AppVersion}
AppVerName=Forespeak {#AppVersion}
AppPublisher=The Forespeak authors
; Not VersionInfoVersion: that takes numbers only, and a version may end in rc1.
VersionInfoProductTextVersion={#AppVersion}
LicenseFile=..\..\LICENSE
; llama.cpp and Qt are built for x64; Windows 11 on Arm runs them too.
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
; What Qt 6 and Python 3.11 ask for.
MinVersion=10.0.17763
; For one person by default, which asks for no administrator; for everybody if that is chosen.
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog commandline
DefaultDirName={autopf}\Forespeak
DisableProgramGroupPage=yes
UninstallDisplayName=Forespeak
UninstallDisplayIcon={app}\forespeak.exe
ChangesAssociations=yes
; The engine's process holds files open: Setup asks running copies to end.
CloseApplications=yes
OutputDir=..\..\dist
OutputBaseFilename=Forespeak-{#AppVersion}-setup
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern

[Languages]
Name: "english"; MessagesFile: "compiler:Default.isl"

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; GroupDescription: "{cm:AdditionalIcons}"; Flags: unchecked

[InstallDelete]
; Libraries of an older version beside the new ones would be found first.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "..\..\dist\forespeak\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Registry]
; Offered for GGUF files, without taking them from another program. HKA is the person's or the machine's own part.
Root: HKA; Subkey: "Software\Classes\.gguf\OpenWithProgids"; ValueType: string; ValueName: "Forespeak.gguf"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\Forespeak.gguf"; ValueType: string; ValueName: ""; ValueData: "GGUF model"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\Forespeak.gguf\DefaultIcon"; ValueType: string; ValueName: ""; ValueData: "{app}\forespeak.exe,0"
Root: HKA; Subkey: "Software\Classes\Forespeak.gguf\shell\open\command"; ValueType: string; ValueName: ""; ValueData: """{app}\forespeak.exe"" ""%1"""

[Icons]
Name: "{autoprograms}\Forespeak"; Filename: "{app}\forespeak.exe"
Name: "{autodesktop}\Forespeak"; Filename: "{app}\forespeak.exe"; Tasks: desktopicon

[Run]
Filename: "{app}\forespeak.exe"; Description: "{cm:LaunchProgram,Forespeak}"; Flags: nowait postinstall skipifsilent
