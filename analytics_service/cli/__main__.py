"""`python -m analytics_service.cli` runs `analytics-service`."""

from analytics_service.cli.main import main

if __name__ == "__main__":
    main()
