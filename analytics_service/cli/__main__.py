"""`python -m analytics_service.cli`: the same as `analytics-service`."""

from analytics_service.cli.main import main

if __name__ == "__main__":
    main()
