"""The commands, a module each. `muster_cli.main` lists them and imports one when it is called."""
